/* linmdp_policy.c: see linmdp_policy.h. Written by `linmdp export`. */
#include "linmdp_policy.h"

#include "linmdp_value.h"

#define BETA $beta

static const linmdp_wide w[LINMDP_LEVELS][LINMDP_D] = {
$weights
};

static const linmdp_quick factor[LINMDP_GROUPS][LINMDP_PACKED] = {
$factors
};

int linmdp_policy(unsigned h, linmdp_state state)
{
    linmdp_seen seen;
    linmdp_wide q[LINMDP_A];
    if (h >= LINMDP_H || !linmdp_is_state(state))
        return -1;
    linmdp_look(state, &seen);
    const unsigned level = LINMDP_LEVELS == 1 ? 0 : h, group = LINMDP_GROUPS == 1 ? 0 : h;
    if (linmdp_quick_optimistic(w[level], factor[group], BETA, h, &seen, q) != 0)
        return -1;
    return (int)linmdp_first_best(q, LINMDP_TIE_ACT);
}
