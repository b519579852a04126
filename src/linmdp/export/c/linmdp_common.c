/* linmdp_common.c: what the learners share. See linmdp_common.h and linmdp.h. */
#include "linmdp_common.h"

#include <math.h>
#include <stddef.h>

#include "linmdp_draws.h"

void linmdp_add_sample(linmdp_step *step, const linmdp_real phi[LINMDP_D], linmdp_real reward)
{
    linmdp_add_outer(step->Lambda, phi);
    linmdp_add_scaled(step->u, (linmdp_wide)reward, phi);
}

int linmdp_regress(linmdp_step *step, const linmdp_wide z[LINMDP_D], linmdp_wide factor[LINMDP_PACKED])
{
    for (size_t i = 0; i < LINMDP_PACKED; i++)
        factor[i] = step->Lambda[i];
    if (linmdp_factor(factor) != 0)
        return LINMDP_NOT_A_NUMBER;
    for (size_t i = 0; i < LINMDP_D; i++)
        step->q.w[i] = step->u[i] + z[i];
    linmdp_solve(factor, step->q.w);
    for (size_t i = 0; i < LINMDP_PACKED; i++)
        step->q.factor[i] = (linmdp_quick)factor[i];
    return LINMDP_OK;
}

void linmdp_clear_sums(linmdp_step *step)
{
    linmdp_set_diagonal(step->Lambda, LINMDP_LAMBDA);
    for (size_t i = 0; i < LINMDP_D; i++)
        step->u[i] = 0;
}

void linmdp_clear_weights(linmdp_weights *weights)
{
    const linmdp_quick reciprocal = (linmdp_quick)(1 / LINMDP_WIDE_SQRT(LINMDP_LAMBDA));
    for (size_t i = 0; i < LINMDP_PACKED; i++)
        weights->factor[i] = 0;
    for (size_t i = 0; i < LINMDP_D; i++) {
        weights->factor[i / LINMDP_P * LINMDP_TRIANGLE + i % LINMDP_P * (i % LINMDP_P + 3) / 2] = reciprocal;
        weights->w[i] = 0;
    }
}

int linmdp_check(const linmdp_learner *learner, unsigned h, linmdp_state state, int action, linmdp_real reward,
                 linmdp_state next_state)
{
    if (learner == NULL)
        return LINMDP_NULL;
    if (h >= LINMDP_H || h != learner->next)
        return LINMDP_BAD_STEP;
    if (!linmdp_is_state(state) || !linmdp_is_state(next_state))
        return LINMDP_BAD_STATE;
    if (action < 0 || action >= LINMDP_A)
        return LINMDP_BAD_ACTION;
    if (!(reward >= LINMDP_REWARD_LOW && reward <= LINMDP_REWARD_HIGH)) /* so written, it refuses what is no number */
        return LINMDP_BAD_REWARD;
    return LINMDP_OK;
}

/* Q_h(state, .) for linmdp_act and linmdp_q_values, or what is wrong. */
static int asked(const linmdp_learner *learner, unsigned h, linmdp_state state, linmdp_wide q[LINMDP_A])
{
    linmdp_seen seen;
    if (learner == NULL)
        return LINMDP_NULL;
    if (h >= LINMDP_H)
        return LINMDP_BAD_STEP;
    if (!linmdp_is_state(state))
        return LINMDP_BAD_STATE;
    linmdp_look(state, &seen);
    return linmdp_quick_optimistic(&learner->step[h].q, h, &seen, q) == 0 ? LINMDP_OK : LINMDP_NOT_A_NUMBER;
}

int linmdp_q_values(const linmdp_learner *learner, unsigned h, linmdp_state state, linmdp_real q[LINMDP_A])
{
    linmdp_wide wide[LINMDP_A];
    const int status = q == NULL ? LINMDP_NULL : asked(learner, h, state, wide);
    if (status == LINMDP_OK)
        for (unsigned a = 0; a < LINMDP_A; a++)
            q[a] = (linmdp_real)wide[a];
    return status;
}

int linmdp_act(const linmdp_learner *learner, unsigned h, linmdp_state state)
{
    linmdp_wide q[LINMDP_A];
    const int status = asked(learner, h, state, q);
    if (status != LINMDP_OK)
        return status;
    unsigned action = linmdp_first_best(q, LINMDP_TIE_ACT);
#if LINMDP_RANDOM_TIES
    const linmdp_wide least = linmdp_largest(q) - LINMDP_TIE_ACT;
    uint32_t tied = 0;
    for (unsigned a = action; a < LINMDP_A; a++)
        tied += (uint32_t)(q[a] >= least);
    uint32_t skip = linmdp_below(learner->tie_key, h, tied);
    while (skip > 0)
        skip -= (uint32_t)(q[++action] >= least);
#endif
    return (int)action;
}

int linmdp_end_episode(linmdp_learner *learner)
{
    if (learner == NULL)
        return LINMDP_NULL;
    learner->next = LINMDP_H;
    return LINMDP_OK;
}
