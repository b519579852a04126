/* linmdp_mask.c: acting where not every action may be taken. */
#include <stddef.h>

#include "linmdp.h"
#include "linmdp_draws.h"

int linmdp_act_within(const linmdp_learner *learner, unsigned h, linmdp_state state, const uint8_t allowed[LINMDP_A])
{
    linmdp_real q[LINMDP_A], top = -LINMDP_REAL_MAX;
    uint32_t tied = 0;
    unsigned action = 0;
    const int first = allowed == NULL ? LINMDP_NULL : linmdp_act(learner, h, state);
    if (first < 0 || allowed[first])
        return first;
    const int status = linmdp_q_values(learner, h, state, q);
    if (status != LINMDP_OK)
        return status;
    for (unsigned a = 0; a < LINMDP_A; a++)
        if (allowed[a] && q[a] > top)
            top = q[a];
    const linmdp_real size = top < 0 ? -top : top, least = top - (linmdp_real)$tie * (size > 1 ? size : 1);
    for (unsigned a = 0; a < LINMDP_A; a++)
        tied += allowed[a] && q[a] >= least;
    if (tied == 0)
        return LINMDP_BAD_ACTION;
    for (uint32_t skip = linmdp_below(learner->$key, h, tied);; action++)
        if (allowed[action] && q[action] >= least && skip-- == 0)
            return (int)action;
}
