/* linmdp_policy.c: see linmdp_policy.h. Written by `linmdp export`. */
#include "linmdp_policy.h"

#include "linmdp_value.h"

#define STRIDE $stride /* so many steps share their weights */

static const linmdp_wide w[LINMDP_LEVELS][LINMDP_D] = {
$weights
};

static const linmdp_quick factor[LINMDP_GROUPS][LINMDP_PACKED] = {
$factors
};

/* of each Q: the width of its bonus, and the least and the largest value that it can have */
static const linmdp_wide beta[LINMDP_LEVELS] = {
$betas
};
static const linmdp_wide least[LINMDP_LEVELS] = {
$least
};
static const linmdp_wide most[LINMDP_LEVELS] = {
$most
};

int linmdp_policy(unsigned h, linmdp_state state)
{
    linmdp_seen seen;
    linmdp_wide q[LINMDP_A];
    if (h >= LINMDP_H || !linmdp_is_state(state))
        return -1;
    linmdp_look(state, &seen);
    const unsigned step = LINMDP_STEP(h), group = LINMDP_GROUPS == 1 ? 0 : step;
    const unsigned level = LINMDP_LEVELS == 1 ? 0 : step / STRIDE;
    if (linmdp_quick_optimistic(w[level], factor[group], beta[level], level * STRIDE, &seen, q) != 0)
        return -1;
    for (unsigned a = 0; a < LINMDP_A; a++)
        q[a] = q[a] > most[level] ? most[level] : q[a] < least[level] ? least[level] : q[a];
    return (int)linmdp_first_best(q, LINMDP_TIE_ACT);
}
