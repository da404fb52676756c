"""Fig. 1: SGD (D = N = 10^4, gamma = 0.02) over the flow; softmax, flipping spike, L = 10, H = F = 2."""

from sgd_over_flow import draw_rows


def draw(folder):
    return draw_rows(folder, ["sgd_fig01_softmax"],
                     r"SGD ($D = N_b = 10^4$, $\gamma = 0.02$) over the flow: flipping spike, $L=10$, "
                     r"$H=F=2$, $\nu_1=\nu_2=2$, $\eta=1$")
