"""Fig. 10: as fig. 1 with a Gaussian prior, L = 5, H = 4, three activations."""

from sgd_over_flow import draw_rows


def draw(folder):
    return draw_rows(folder, [f"sgd_fig10_{a}" for a in ("softmax", "softmax-1", "b-softmax")],
                     r"SGD ($D = N_b = 10^4$, $\gamma = 0.02$) over the flow: Gaussian prior, $L=5$, "
                     r"$H=4$, $F=2$, $\nu=8,2$, $\eta=1$")
