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
        phi[action * LINMDP_P + i] = seen->psi[i];
}

/* The state in [0, 1]^LINMDP_N: cut to its bounds; 0 where those are the same. */
static void scale(linmdp_state state, linmdp_wide x[LINMDP_N])
{
    for (size_t i = 0; i < LINMDP_N; i++) {
        const linmdp_wide above = (linmdp_wide)state[i] - low[i];
        x[i] = above <= 0 || width[i] <= 0 ? 0 : above >= width[i] ? 1 : above / width[i];
    }
}

