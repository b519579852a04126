/* linmdp_common.c: what the learners share. See linmdp_common.h and linmdp.h. */
#include "linmdp_common.h"

#include <math.h>
#include <stddef.h>

#include "linmdp_draws.h"

/* The factor of Lambda, for planning and, in quick numbers, for acting. */
static int refactor(linmdp_core *core, unsigned g)
{
    linmdp_group *group = &core->group[g];
    for (size_t i = 0; i < LINMDP_PACKED; i++)
        core->factor[i] = group->Lambda[i];
    if (linmdp_factor(core->factor) != 0)
        return LINMDP_NOT_A_NUMBER;
    for (size_t i = 0; i < LINMDP_PACKED; i++)
        group->factor[i] = (linmdp_quick)core->factor[i];
    return LINMDP_OK;
}

/* w = Lambda^-1 (u + discount z) */
static void regress(const linmdp_core *core, unsigned g, const linmdp_wide z[LINMDP_D], linmdp_wide w[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        w[i] = core->group[g].u[i] + LINMDP_DISCOUNT * z[i];
    linmdp_solve(core->factor, w);
}

#if LINMDP_LEVELS == 1 && LINMDP_AHEAD > 1
/* to = from */
static void copy(linmdp_wide to[LINMDP_D], const linmdp_wide from[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        to[i] = from[i];
}

/* Discounted rewards: one Q, planned until nothing moves. Backups need not converge: then that which moved least. */
static int solve(linmdp_learner *m, linmdp_wide w[LINMDP_LEVELS][LINMDP_D], linmdp_wide beta)
{
    const linmdp_wide cap = linmdp_cap(0), tolerance = LINMDP_TOLERANCE * (cap > 1 ? cap : 1);
    linmdp_wide z[LINMDP_D], before[LINMDP_D], best[LINMDP_D], least = LINMDP_WIDE_MAX, moved = LINMDP_WIDE_MAX;
    if (refactor(&m->core, 0) != LINMDP_OK)
        return LINMDP_NOT_A_NUMBER;
    copy(best, w[0]);
    for (unsigned sweep = 0; sweep < LINMDP_SWEEPS && moved > tolerance; sweep++) {
        if (linmdp_target(m, 0, w[0], beta, z) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        copy(before, w[0]);
        regress(&m->core, 0, z, w[0]);
        moved = 0;
        for (size_t i = 0; i < LINMDP_D; i++) {
            const linmdp_wide change = w[0][i] < before[i] ? before[i] - w[0][i] : w[0][i] - before[i];
            moved = change > moved ? change : moved;
        }
        if (moved > LINMDP_DIVERGING * least) {
            copy(w[0], best);
            break;
        }
        if (moved < least) {
            copy(best, w[0]);
            least = moved;
        }
    }
    return LINMDP_OK;
}
#else
/* Backwards over the steps. */
static int solve(linmdp_learner *m, linmdp_wide w[LINMDP_LEVELS][LINMDP_D], linmdp_wide beta)
{
    linmdp_wide z[LINMDP_D];
    for (unsigned h = LINMDP_AHEAD; h-- > 0;) {
        for (size_t i = 0; i < LINMDP_D; i++)
            z[i] = 0;
        if (h + 1 < LINMDP_AHEAD && linmdp_target(m, h, w[LINMDP_AFTER(h)], beta, z) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        if ((LINMDP_GROUPS > 1 || h + 1 == LINMDP_AHEAD) && refactor(&m->core, LINMDP_GROUP(h)) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        regress(&m->core, LINMDP_GROUP(h), z, w[LINMDP_LEVEL(h)]);
    }
    return LINMDP_OK;
}
#endif

int linmdp_plan(linmdp_learner *m) { return solve(m, m->core.w, m->core.beta); }

int linmdp_renew_width(linmdp_learner *m)
{
#if LINMDP_AUTO
    linmdp_width *width = &m->core.width;
    if (width->episodes < width->due)
        return LINMDP_OK;
    for (size_t level = 0; level < LINMDP_LEVELS; level++)
        for (size_t i = 0; i < LINMDP_D; i++)
            width->w[level][i] = m->core.w[level][i];
    if (solve(m, width->w, 0) != LINMDP_OK)
        return LINMDP_NOT_A_NUMBER;
    linmdp_width_renewed(width);
#else
    (void)m;
#endif
    return LINMDP_OK;
}

int linmdp_seen_value(const linmdp_core *core, unsigned h, const linmdp_wide w[LINMDP_D], linmdp_wide beta,
                      const linmdp_seen *seen, linmdp_wide *V)
{
    linmdp_wide q[LINMDP_A];
    if (linmdp_optimistic(w, core->factor, beta, h, seen, q) != 0)
        return LINMDP_NOT_A_NUMBER;
    *V = linmdp_largest(q);
    return LINMDP_OK;
}

int linmdp_state_value(const linmdp_core *core, unsigned h, const linmdp_wide w[LINMDP_D], linmdp_wide beta,
                       const linmdp_kept *kept, linmdp_wide *V)
{
    linmdp_seen seen;
    linmdp_look(linmdp_recall(kept), &seen);
    return linmdp_seen_value(core, h, w, beta, &seen, V);
}

void linmdp_features_of(const linmdp_kept *state, unsigned action, linmdp_real phi[LINMDP_D])
{
    linmdp_seen seen;
    linmdp_look(linmdp_recall(state), &seen);
    linmdp_phi(&seen, action, phi);
}

void linmdp_core_init(linmdp_core *core, uint32_t seed)
{
    for (unsigned g = 0; g < LINMDP_GROUPS; g++) {
        linmdp_set_diagonal(core->group[g].Lambda, LINMDP_LAMBDA);
        for (size_t i = 0; i < LINMDP_D; i++)
            core->group[g].u[i] = 0;
        (void)refactor(core, g); /* of lam I: it can not fail */
    }
    for (size_t level = 0; level < LINMDP_LEVELS; level++)
        for (size_t i = 0; i < LINMDP_D; i++)
            core->w[level][i] = 0;
    core->beta = LINMDP_BETA;
#if LINMDP_AUTO
    linmdp_width_init(&core->width);
#endif
    core->seed = seed;
    core->draws = core->tie_key = 0;
    core->next = LINMDP_H;
    core->open = core->over = 0;
}

void linmdp_open(linmdp_core *core, int planned)
{
    core->tie_key = linmdp_draw(core->seed, core->draws++);
    core->next = 0;
    core->open = 1;
    core->over = 0;
#if LINMDP_AUTO
    if (planned)
        core->beta = linmdp_width_choose(&core->width);
#else
    (void)planned;
#endif
}

int linmdp_check(const linmdp_learner *learner, unsigned h, linmdp_state state, int action, linmdp_real reward,
                 linmdp_state next_state)
{
    if (learner == NULL)
        return LINMDP_NULL;
    if (h >= LINMDP_H || !learner->core.open || h != learner->core.next)
        return LINMDP_BAD_STEP;
    if (!linmdp_is_state(state) || !linmdp_is_state(next_state))
        return LINMDP_BAD_STATE;
    if (action < 0 || action >= LINMDP_A)
        return LINMDP_BAD_ACTION;
    if (!(reward >= LINMDP_REWARD_LOW && reward <= LINMDP_REWARD_HIGH)) /* so written, it refuses what is no number */
        return LINMDP_BAD_REWARD;
    return LINMDP_OK;
}

void linmdp_note(linmdp_core *core, unsigned h, linmdp_state state, int action, linmdp_real reward, int terminated,
                 linmdp_real phi[LINMDP_D])
{
    linmdp_seen seen;
    linmdp_look(state, &seen);
    linmdp_phi(&seen, (unsigned)action, phi);
    core->next = (uint16_t)(h + 1);
    core->over = terminated != 0;
#if LINMDP_AUTO
    linmdp_width_see(&core->width, LINMDP_STEP(h), &seen, (unsigned)action, (linmdp_wide)reward);
#else
    (void)reward;
#endif
}

void linmdp_add_sample(linmdp_core *core, unsigned h, const linmdp_real phi[LINMDP_D], linmdp_real reward)
{
    linmdp_group *group = &core->group[LINMDP_GROUP(h)];
    linmdp_add_outer(group->Lambda, 1, phi);
    linmdp_add_scaled(group->u, (linmdp_wide)reward, phi);
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
    const linmdp_core *core = &learner->core;
    const unsigned step = LINMDP_STEP(h);
    const linmdp_wide *w = core->w[LINMDP_LEVEL(step)];
    linmdp_look(state, &seen);
    return linmdp_quick_optimistic(w, core->group[LINMDP_GROUP(step)].factor, core->beta, step, &seen, q) == 0
               ? LINMDP_OK
               : LINMDP_NOT_A_NUMBER;
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
    uint32_t skip = linmdp_below(learner->core.tie_key, h, tied);
    while (skip > 0)
        skip -= (uint32_t)(q[++action] >= least);
#endif
    return (int)action;
}

int linmdp_end_episode(linmdp_learner *learner)
{
    if (learner == NULL)
        return LINMDP_NULL;
#if LINMDP_AUTO
    if (learner->core.open && learner->core.next > 0)
        linmdp_width_end(&learner->core.width, learner->core.over || learner->core.next == LINMDP_H);
#endif
    learner->core.next = LINMDP_H;
    learner->core.open = 0;
    return LINMDP_OK;
}
