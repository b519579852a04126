/* linmdp_learner.c: lsvi-gp. Least-squares value iteration with a Gaussian process over states, whose shares the data
 * choose; see linmdp_job.c for the planning.
 */
#include <math.h>
#include <stddef.h>

#include "linmdp_draws.h"
#include "linmdp_gp.h"

#define LATE (UINT32_MAX / 2) /* counters stop here */

int linmdp_init(linmdp_learner *m, uint32_t seed)
{
    if (m == NULL)
        return LINMDP_NULL;
    linmdp_experience *e = &m->experience;
    e->count = e->held = e->begun = 0;
    e->seen = e->again = 0;
    e->radius = 0;
    for (unsigned j = 0; j < LINMDP_K; j++)
        e->centre[j] = e->unit[j] = 0;
    linmdp_returns_init(&m->returns);
    m->plan[0].points = m->plan[1].points = 0;
    m->job.stage = 0;
    const linmdp_shares none = {0, 0, 0, 0};
    m->shares = none;
    m->usual = m->value = 0;
    m->scout = (linmdp_wide)LINMDP_EVERY;
    m->steps = m->due = m->episodes = m->usuals = 0;
    m->seed = seed;
    m->draws = m->tie_key = 0;
    m->next = LINMDP_H;
    m->open = m->over = m->acting = m->scouting = 0;
    return LINMDP_OK;
}

static void point_of(unsigned h, linmdp_state state, linmdp_point *point)
{
    linmdp_coordinates(state, point->x);
#if LINMDP_CLOCK
    point->x[LINMDP_K - 1] = (linmdp_number)h;
#else
    (void)h;
#endif
}

/* Q_h(state, .) by the plan that acts; all 0 before there is one. */
static void look_up(const linmdp_learner *m, unsigned h, const linmdp_point *point, linmdp_wide q[LINMDP_A])
{
    const linmdp_plan *plan = &m->plan[m->acting];
    const unsigned horizon = linmdp_horizon(&m->returns);
    for (unsigned a = 0; a < LINMDP_A; a++)
        q[a] = 0;
    if (plan->points > 0)
        linmdp_plan_q(plan, point, horizon > h ? horizon - h : 0, q);
}

static linmdp_wide largest(const linmdp_wide q[LINMDP_A])
{
    linmdp_wide found = q[0];
    for (unsigned a = 1; a < LINMDP_A; a++)
        found = q[a] > found ? q[a] : found;
    return found;
}

static void plan(linmdp_learner *m, int wide)
{
    linmdp_job_begin(m, wide);
    while (linmdp_job_unit(m) > 0) {
    }
    m->acting = !m->acting;
}

/* `news`: what has just been seen is worth a plan. That of a scout is made anew in its place. */
static void plan_if_due(linmdp_learner *m, int news)
{
    if (m->scouting && news) {
        m->acting = !m->acting;
        plan(m, 1);
    }
    if (m->scouting || m->steps == 0 || (m->steps < m->due && !news))
        return;
    plan(m, 0);
    const linmdp_wide grown = m->steps * (1 + LINMDP_REPLAN);
    m->due = (uint32_t)grown + (uint32_t)((linmdp_wide)(uint32_t)grown < grown);
    m->due = m->due > m->steps ? m->due : m->steps + 1;
}

/* Whether a scout is to be sent into this episode. */
static int sends_scout(const linmdp_learner *m)
{
    const linmdp_wide range = m->usuals > 0 ? m->returns.episode[1] - m->returns.episode[0] : 0;
    return LINMDP_SCOUT > 0 && range > 0 && (linmdp_wide)m->episodes >= m->scout &&
           linmdp_come_again(&m->experience) > 0.5 && m->value - m->usual <= LINMDP_SETTLED * range;
}

int linmdp_begin_episode(linmdp_learner *m)
{
    if (m == NULL)
        return LINMDP_NULL;
    if (m->open)
        (void)linmdp_end_episode(m);
    m->next = 0;
    m->open = 1;
    m->over = 0;
    m->tie_key = linmdp_draw(m->seed, m->draws++);
    m->episodes += m->episodes < LATE;
    plan_if_due(m, 0);
    if (sends_scout(m)) {
        plan(m, 1);
        m->scouting = 1;
    }
    return LINMDP_OK;
}

static int asked(const linmdp_learner *m, unsigned h, linmdp_state state, linmdp_wide q[LINMDP_A])
{
    linmdp_point point;
    if (m == NULL)
        return LINMDP_NULL;
    if (h >= LINMDP_H)
        return LINMDP_BAD_STEP;
    if (!linmdp_is_state(state))
        return LINMDP_BAD_STATE;
    point_of(h, state, &point);
    look_up(m, h, &point, q);
    return LINMDP_OK;
}

int linmdp_q_values(const linmdp_learner *m, unsigned h, linmdp_state state, linmdp_real q[LINMDP_A])
{
    linmdp_wide wide[LINMDP_A];
    const int status = q == NULL ? LINMDP_NULL : asked(m, h, state, wide);
    for (unsigned a = 0; status == LINMDP_OK && a < LINMDP_A; a++)
        q[a] = (linmdp_real)wide[a];
    return status;
}

int linmdp_act(const linmdp_learner *m, unsigned h, linmdp_state state)
{
    linmdp_wide q[LINMDP_A];
    const int status = asked(m, h, state, q);
    if (status != LINMDP_OK)
        return status;
    const linmdp_wide top = largest(q), size = top < 0 ? -top : top;
    const linmdp_wide least = top - LINMDP_TIE * (size > 1 ? size : 1);
    uint32_t tied = 0;
    for (unsigned a = 0; a < LINMDP_A; a++)
        tied += q[a] >= least;
    uint32_t skip = linmdp_below(m->tie_key, h, tied);
    unsigned action = 0;
    while (q[action] < least || skip-- > 0)
        action++;
    return (int)action;
}

int linmdp_observe(linmdp_learner *m, unsigned h, linmdp_state state, int action, linmdp_real reward,
                   linmdp_state next_state, int terminated)
{
    linmdp_point x, y;
    linmdp_wide q[LINMDP_A];
    if (m == NULL)
        return LINMDP_NULL;
    if (h >= LINMDP_H || !m->open || h != m->next)
        return LINMDP_BAD_STEP;
    if (!linmdp_is_state(state) || !linmdp_is_state(next_state))
        return LINMDP_BAD_STATE;
    if (action < 0 || action >= LINMDP_A)
        return LINMDP_BAD_ACTION;
    if (!(reward >= LINMDP_REWARD_LOW && reward <= LINMDP_REWARD_HIGH)) /* so written, it refuses what is no number */
        return LINMDP_BAD_REWARD;
    point_of(h, state, &x);
    point_of(h + 1, next_state, &y);
    if (h == 0 && !m->scouting) {
        look_up(m, 0, &x, q);
        m->value = largest(q);
    }
    m->next = (uint16_t)(h + 1);
    m->over = terminated && h + 1 < LINMDP_H; /* nothing would follow the last step anyway */
    m->rewards[h] = (linmdp_wide)reward;
    linmdp_widen(m->returns.reward, (linmdp_wide)reward);
    linmdp_add(&m->experience, &x, (unsigned)action, reward, &y, m->over);
    m->steps += m->steps < LATE;
    const int explores = m->scouting || linmdp_hope(&m->returns) > 0;
    plan_if_due(m, explores && linmdp_doubled(&m->experience, &x, (unsigned)action));
    return LINMDP_OK;
}

int linmdp_end_episode(linmdp_learner *m)
{
    if (m == NULL)
        return LINMDP_NULL;
    if (!m->open)
        return LINMDP_OK;
    const linmdp_wide earned = linmdp_returns_ended(&m->returns, m->rewards, m->sums, m->next, m->over);
    if (m->scouting) {
        const linmdp_wide k = (linmdp_wide)m->episodes, lost = m->usual > earned ? m->usual - earned : 0;
        const linmdp_wide range = m->returns.episode[1] - m->returns.episode[0];
        const linmdp_wide wait = 2 * (lost / range) * LINMDP_WIDE_SQRT(k) / LINMDP_BUDGET;
        m->scout = k + (wait > (linmdp_wide)LINMDP_EVERY ? wait : (linmdp_wide)LINMDP_EVERY);
        m->acting = !m->acting;
    } else {
        m->usuals += m->usuals < LATE;
        const linmdp_wide share = 1 / (linmdp_wide)m->usuals;
        m->usual += (share > 0.1 ? share : 0.1) * (earned - m->usual);
    }
    m->scouting = m->open = 0;
    m->next = LINMDP_H;
    return LINMDP_OK;
}
