"""Fig. 9: as fig. 1 with L = 5, three activations."""

from sgd_over_flow import draw_rows


def draw(folder):
    return draw_rows(folder, [f"sgd_fig09_{a}" for a in ("softmax", "softmax-1", "b-softmax")],
                     r"SGD ($D = N_b = 10^4$, $\gamma = 0.02$) over the flow: flipping spike, $L=5$, "
                     r"$H=F=2$, $\nu_1=\nu_2=2$, $\eta=1$")
