/* linmdp_features.c: see linmdp_features.h. Written by `linmdp export`. */
#include "linmdp_features.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

$tables
int linmdp_is_state(linmdp_state state)
{
    if (state == NULL)
        return 0;
    for (size_t i = 0; i < LINMDP_N; i++)
        if (!(state[i] >= -LINMDP_REAL_MAX && state[i] <= LINMDP_REAL_MAX))
            return 0;
    return 1;
}

void linmdp_phi(const linmdp_seen *seen, unsigned action, linmdp_real phi[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        phi[i] = 0;
    for (size_t i = 0; i < LINMDP_P; i++)
        phi[action * LINMDP_P + i] = (linmdp_real)seen->psi[i];
}

/* The state in units of its bounds: cut at 0 and 1, or a margin beyond; 0 where the bounds are the same. */
static void scale(linmdp_state state, linmdp_wide x[LINMDP_N])
{
    for (size_t i = 0; i < LINMDP_N; i++) {
        const linmdp_wide part = width[i] <= 0 ? 0 : ((linmdp_wide)state[i] - low[i]) / width[i];
        x[i] = part < -margin[i] ? -margin[i] : part > 1 + margin[i] ? 1 + margin[i] : part;
    }
}

/* psi_j = cos(pi (<omega_j, x> + shift_j)) / sqrt(LINMDP_P) */
void linmdp_look(linmdp_state state, linmdp_seen *seen)
{
    linmdp_wide x[LINMDP_N];
    scale(state, x);
    for (size_t j = 0; j < LINMDP_P; j++) {
        linmdp_wide turn = shift[j];
        for (size_t i = 0; i < LINMDP_N; i++)
            turn += omega[j][i] * x[i];
        turn -= 2 * floor(turn / 2); /* in half turns: exact, and small enough for a quick cosine */
        seen->psi[j] = cos(PI * turn) * LENGTH;
    }
}
