/* linmdp_job.c: a planning, a unit of work at a time.
 *
 * It begins with a copy of what is held, as states and cells (a state with an action that was tried there). Then come the
 * features of the states, the shares, the regression, and the steps left, one after the other:
 *
 *     y_c   = mean reward of cell c + mean of V_(g-1) where it led to - top_g
 *     w_g   = the smooth part fitted to y, v_g = what each cell has of its own
 *     Q_g   = top_g + phi'w_g + v_g + beta s_g (posterior deviation) + a share of hope,  V_g = max_a Q_g
 */
#include <math.h>

#include "linmdp_gp.h"

enum { NOTHING, COLUMNS, TRIANGLE, VALUES, REGRESSION, EVIDENCE, DEVIATIONS, LEVELS };

static linmdp_plan *made(linmdp_learner *m) { return &m->plan[!m->acting]; }

static linmdp_real most(linmdp_real x, linmdp_real y) { return x > y ? x : y; }

static linmdp_real least(linmdp_real x, linmdp_real y) { return x < y ? x : y; }

static void next_stage(linmdp_job *job, unsigned stage)
{
    job->stage = (uint8_t)stage;
    job->at = 0;
}

/* The number of a point, in the order of their first transitions. */
static uint16_t rank_of(linmdp_learner *m, uint16_t point)
{
    linmdp_plan *plan = made(m);
    uint16_t *rank = &m->experience.rank[point];
    if (*rank == LINMDP_NONE) {
        plan->point[plan->points] = m->experience.point[point];
        *rank = plan->points++;
    }
    return *rank;
}

static uint32_t key_of(const linmdp_learner *m, unsigned row)
{
    const linmdp_experience *e = &m->experience;
    return (uint32_t)e->rank[e->row[row].from] * LINMDP_A + e->row[row].action;
}

static int before(const void *of, unsigned i, unsigned j)
{
    const linmdp_learner *m = of;
    const unsigned x = m->job.order[i], y = m->job.order[j];
    const uint32_t first = key_of(m, x), second = key_of(m, y);
    return first < second || (first == second && x < y);
}

static void swap(void *of, unsigned i, unsigned j)
{
    uint16_t *order = ((linmdp_learner *)of)->job.order, moved = order[i];
    order[i] = order[j];
    order[j] = moved;
}

/* What is held, state by state and cell by cell. */
static void copy_cells(linmdp_learner *m)
{
    linmdp_job *job = &m->job;
    linmdp_plan *plan = made(m);
    linmdp_experience *e = &m->experience;
    const int fixed = m->returns.shortest == m->returns.longest;
    for (unsigned i = 0; i < e->held; i++)
        e->rank[i] = LINMDP_NONE;
    plan->points = plan->cells = 0;
    job->within = 0;
    for (unsigned i = 0; i < e->count; i++) {
        const linmdp_row *row = &e->row[i];
        const linmdp_real spread = row->squared - row->reward * row->reward;
        (void)rank_of(m, row->from);
        job->following[i] = rank_of(m, row->to);
        if (row->over && !fixed)
            job->following[i] = LINMDP_NONE;
        job->order[i] = (uint16_t)i;
        job->within += (linmdp_wide)(row->times * most(spread, 0));
    }
    linmdp_sort(m, e->count, before, swap);
    for (unsigned i = 0, u = 0; i < e->count; i++) {
        const unsigned at = job->order[i];
        if (i == 0 || key_of(m, at) != key_of(m, job->order[i - 1])) {
            const unsigned c = plan->cells++, state = key_of(m, at) / LINMDP_A;
            while (u <= state)
                plan->begins[u++] = (uint16_t)c;
            job->state[c] = (uint16_t)state;
            plan->action[c] = e->row[at].action;
            job->times[c] = job->reward[c] = 0;
            job->stands[c] = 1;
        }
        job->cell[at] = (uint16_t)(plan->cells - 1);
        job->times[job->cell[at]] += e->row[at].times;
        job->stands[job->cell[at]] += (linmdp_real)e->row[at].others;
    }
    for (unsigned u = job->state[plan->cells - 1] + 1u; u <= plan->points; u++)
        plan->begins[u] = plan->cells;
    for (unsigned i = 0; i < e->count; i++) {
        const unsigned c = job->cell[i];
        job->share[i] = e->row[i].times / job->times[c];
        job->reward[c] += job->share[i] * e->row[i].reward;
    }
    job->rows = e->count;
}

void linmdp_job_begin(linmdp_learner *m, int wide)
{
    linmdp_job *job = &m->job;
    linmdp_plan *plan = made(m);
    linmdp_experience *e = &m->experience;
    const linmdp_returns *r = &m->returns;
    const unsigned horizon = linmdp_horizon(r);
    unsigned moving = 0;
    linmdp_rescale(e);
    copy_cells(m);
    linmdp_returns_bounds(r, job->top, job->low);
    for (unsigned j = 0; j < LINMDP_K; j++)
        moving += e->unit[j] > 0;
    const linmdp_wide length = LINMDP_LENGTH * LINMDP_WIDE_SQRT((moving > 1 ? moving : 1) / 3.0);
    for (unsigned j = 0; j < LINMDP_K; j++) {
        plan->centre[j] = e->centre[j];
        plan->unit[j] = e->unit[j] / length;
    }
    plan->again = linmdp_come_again(e);
    plan->reach = wide ? LINMDP_SCOUT * (r->episode[1] - r->episode[0]) : linmdp_hope(r);
    plan->steps = (uint16_t)(r->longest > 0 && horizon < LINMDP_L ? horizon : LINMDP_L);
    plan->stride = (uint16_t)((plan->steps + LINMDP_KEPT - 1) / LINMDP_KEPT);
    plan->levels = (uint16_t)((plan->steps + plan->stride - 1) / plan->stride);
    plan->features = 0;
    for (unsigned u = 0; u < plan->points; u++)
        job->left[u] = 1;
    job->wide = (uint8_t)wide;
    job->round = wide ? LINMDP_EVIDENCE : 0;
    next_stage(job, COLUMNS);
}

/* The next feature: k with the point that those so far say least about, less what they say. 0 if they say all. */
static uint32_t add_column(linmdp_learner *m)
{
    linmdp_job *job = &m->job;
    linmdp_plan *plan = made(m);
    const unsigned n = plan->features, U = plan->points;
    linmdp_real largest = job->left[0];
    unsigned i = 0;
    for (unsigned u = 1; u < U; u++)
        largest = most(largest, job->left[u]);
    while (!(job->left[i] > largest - (linmdp_real)LINMDP_CLOSE_BY))
        i++;
    if (n == LINMDP_P || n == U || job->left[i] < (linmdp_real)LINMDP_LEFT_OUT)
        return 0;
    for (unsigned j = 0; j < LINMDP_K; j++)
        plan->pivot[n][j] = ((linmdp_wide)plan->point[i].x[j] - plan->centre[j]) * plan->unit[j];
    job->pivot[n] = (uint16_t)i;
    const linmdp_real root = LINMDP_REAL_SQRT(job->left[i]);
    for (unsigned u = 0; u < U; u++) {
        linmdp_real square = 0;
        for (unsigned j = 0; j < LINMDP_K; j++) {
            const linmdp_real away = (linmdp_real)(((linmdp_wide)plan->point[u].x[j] - plan->centre[j]) * plan->unit[j] -
                                                   plan->pivot[n][j]);
            square += away * away;
        }
        linmdp_real f = (1 - (linmdp_real)LINMDP_SHORT) * LINMDP_REAL_EXP((linmdp_real)-0.5 * square) +
                        (linmdp_real)LINMDP_SHORT *
                            LINMDP_REAL_EXP((linmdp_real)(-0.5 * LINMDP_SHORTER * LINMDP_SHORTER) * square);
        for (unsigned j = 0; j < n; j++)
            f -= job->F[u][j] * job->F[i][j];
        job->F[u][n] = f / root;
    }
    for (unsigned u = 0; u < U; u++)
        job->left[u] = most(job->left[u] - job->F[u][n] * job->F[u][n], 0);
    plan->features++;
    return U * (LINMDP_K + n + 4u);
}

/* Row i of the inverse of the lower triangle of the pivots' features. */
static uint32_t invert_row(linmdp_learner *m, unsigned i)
{
    const linmdp_real *f = m->job.F[m->job.pivot[i]];
    linmdp_plan *plan = made(m);
    for (unsigned j = 0; j <= i; j++) {
        linmdp_wide sum = i == j;
        for (unsigned l = j; l < i; l++)
            sum -= (linmdp_wide)f[l] * *linmdp_entry(plan->inverse, l, j);
        *linmdp_entry(plan->inverse, i, j) = sum / (linmdp_wide)f[i];
    }
    return (i + 1) * (i + 2) / 2;
}

/* The value of a point by the plan before, or the most that there can be. */
static uint32_t value_point(linmdp_learner *m, unsigned u)
{
    const linmdp_plan *plan = made(m), *old = &m->plan[m->acting];
    const unsigned n = old->features;
    linmdp_wide q[LINMDP_A], value;
    m->job.V[u] = m->job.top[plan->steps - 1];
    if (old->points == 0)
        return 1;
    linmdp_plan_q(old, &plan->point[u], plan->steps - 1u, q);
    value = q[0];
    for (unsigned a = 1; a < LINMDP_A; a++)
        value = q[a] > value ? q[a] : value;
    m->job.V[u] = value;
    return n * (n + LINMDP_K + 8);
}

/* Mean targets of the cells, and what they vary within; 0 if there is nothing to explain. */
static int set_targets(linmdp_learner *m)
{
    linmdp_job *job = &m->job;
    const linmdp_plan *plan = made(m);
    linmdp_wide largest = m->returns.reward[1], squares = 0;
    largest = -m->returns.reward[0] > largest ? -m->returns.reward[0] : largest;
    for (unsigned c = 0; c < plan->cells; c++)
        job->y[c] = 0;
    for (unsigned i = 0; i < job->rows; i++) {
        const unsigned c = job->cell[i];
        const linmdp_wide share = (linmdp_wide)job->share[i];
        const linmdp_wide V = job->following[i] != LINMDP_NONE && plan->steps > 1
                                  ? LINMDP_DISCOUNT * job->V[job->following[i]]
                                  : 0;
        job->y[c] += share * V;
        const linmdp_wide target = (linmdp_wide)m->experience.row[i].reward + V;
        job->within += share * (linmdp_wide)job->times[c] * target * target;
    }
    job->visited = 0;
    for (unsigned c = 0; c < plan->cells; c++) {
        const linmdp_wide times = (linmdp_wide)job->times[c];
        job->y[c] += (linmdp_wide)job->reward[c];
        job->within -= times * job->y[c] * job->y[c];
        job->y[c] -= job->top[plan->steps];
        squares += times * job->y[c] * job->y[c];
        job->visited += times;
    }
    job->within = job->within > 0 ? job->within : 0;
    job->power = squares / job->visited;
    largest *= 1e-10;
    if (job->power <= largest * largest || job->power <= 0) {
        const linmdp_shares nothing = {1e-12, 1e-12, 1e-12, 1e-16};
        m->shares = nothing;
        return 0;
    }
    if (m->shares.shared <= 1e-12 && m->shares.noise <= 1e-16) { /* none so far, or nothing to explain then */
        const linmdp_wide start[] = {LINMDP_START};
        m->shares.shared = start[0] * job->power;
        m->shares.own = start[1] * job->power;
        m->shares.exact = start[2] * job->power;
        m->shares.noise = start[3] * job->power;
    }
    return 1;
}

/* Posterior deviations of a point, and what may be hoped for there beyond the best so far. */
static uint32_t deviate(linmdp_learner *m, unsigned u)
{
    linmdp_job *job = &m->job;
    linmdp_plan *plan = made(m);
    const linmdp_shares *s = &plan->shares;
    const unsigned n = plan->features;
    const linmdp_wide tau = s->exact + (s->shared + s->own) * (linmdp_wide)job->left[u];
    const linmdp_wide whole = s->shared + s->own + s->exact;
    linmdp_wide phi[LINMDP_P];
    for (unsigned i = 0; i < n; i++)
        phi[i] = (linmdp_wide)job->F[u][i];
    unsigned c = plan->begins[u];
    for (unsigned a = 0; a < LINMDP_A; a++) {
        linmdp_wide square = linmdp_variance(&plan->fit, s->own, n, a, phi), fresh = 1;
        if (c < plan->begins[u + 1] && plan->action[c] == a) {
            const linmdp_wide stands = (linmdp_wide)job->stands[c], times = 1 + (linmdp_wide)job->times[c];
            const linmdp_wide kept = tau * (linmdp_wide)job->omega[c] / stands;
            square = (1 - kept) * (1 - kept) * square + tau * (1 - kept / stands);
            fresh = 1 / (job->wide ? LINMDP_WIDE_SQRT(times) : times);
            c++;
        } else {
            square += tau;
        }
        const linmdp_wide part = square / whole < 1 ? square / whole : 1;
        plan->deviation[u][a] = (linmdp_real)LINMDP_WIDE_SQRT(square);
        plan->hope[u][a] = (linmdp_real)(plan->again * fresh + (1 - plan->again) * part);
    }
    return LINMDP_A * 2 * n * n;
}

/* One step more. */
static uint32_t plan_level(linmdp_learner *m, unsigned g)
{
    linmdp_job *job = &m->job;
    linmdp_plan *plan = made(m);
    const linmdp_shares *s = &plan->shares;
    const unsigned n = plan->features, U = plan->points, level = (g + plan->stride - 1) / plan->stride - 1;
    const int kept = g % plan->stride == 0 || g == plan->steps;
    linmdp_real sums[LINMDP_A][LINMDP_P] = {{0}}, w[LINMDP_A][LINMDP_P];
    linmdp_wide squares = 0;
    for (unsigned c = 0; c < plan->cells; c++)
        job->y[c] = (linmdp_wide)job->reward[c] - job->top[g];
    for (unsigned i = 0; g > 1 && i < job->rows; i++)
        if (job->following[i] != LINMDP_NONE)
            job->y[job->cell[i]] += LINMDP_DISCOUNT * (linmdp_wide)job->share[i] * job->V[job->following[i]];
    for (unsigned c = 0; c < plan->cells; c++) {
        const linmdp_real *f = job->F[job->state[c]], target = (linmdp_real)((linmdp_wide)job->omega[c] * job->y[c]);
        linmdp_real *sum = sums[plan->action[c]];
        for (unsigned i = 0; i < n; i++)
            sum[i] += f[i] * target;
    }
    for (unsigned a = 0; a < LINMDP_A; a++)
        for (unsigned i = 0; i < n; i++)
            job->z[a][i] = (linmdp_wide)sums[a][i];
    linmdp_weights(&plan->fit, s->own, n, job->z, job->w, job->w_0);
    for (unsigned a = 0; a < LINMDP_A; a++)
        for (unsigned i = 0; i < n; i++) {
            w[a][i] = (linmdp_real)job->w[a][i];
            if (kept)
                plan->w[level][a][i] = w[a][i];
        }
    for (unsigned u = 0; u < U; u++)
        for (unsigned a = 0; a < LINMDP_A; a++) {
            linmdp_real q = 0;
            for (unsigned i = 0; i < n; i++)
                q += w[a][i] * job->F[u][i];
            job->Q[u][a] = q;
        }
    for (unsigned c = 0; c < plan->cells; c++) {
        linmdp_real *q = &job->Q[job->state[c]][plan->action[c]];
        const linmdp_wide error = job->y[c] - (linmdp_wide)*q, omega = (linmdp_wide)job->omega[c];
        const linmdp_wide tau = s->exact + (s->shared + s->own) * (linmdp_wide)job->left[job->state[c]];
        const linmdp_real own = (linmdp_real)((linmdp_wide)(linmdp_real)(tau * omega / (linmdp_wide)job->stands[c]) * error);
        squares += omega * job->y[c] * error;
        *q += own;
        if (kept)
            plan->own[level][c] = own;
    }
    const linmdp_wide scale = LINMDP_WIDE_SQRT((squares > 0 ? squares : 0) / (linmdp_wide)plan->cells);
    const linmdp_real reach = (linmdp_real)(plan->reach * (job->wide ? g : 1)); /* a scout's at every step */
    for (unsigned u = 0; u < U; u++) {
        linmdp_real best = -INFINITY;
        for (unsigned a = 0; a < LINMDP_A; a++) {
            const linmdp_real bonus = (linmdp_real)(LINMDP_BETA * (linmdp_wide)plan->deviation[u][a]);
            const linmdp_real q = least(job->Q[u][a] + (linmdp_real)scale * bonus, reach);
            best = most(best, q + plan->hope[u][a] * least((linmdp_real)plan->reach, reach - q));
        }
        const linmdp_wide value = (linmdp_wide)best + job->top[g];
        job->V[u] = value > job->low[g] ? value : job->low[g];
    }
    if (kept) {
        plan->scale[level] = scale;
        plan->top[level] = job->top[g];
        plan->cap[level] = job->top[g] + plan->reach * (job->wide ? g : 1);
        plan->low[level] = job->low[g];
    }
    return U * n * LINMDP_A + LINMDP_A * 2 * n * n + plan->cells * (n + 4u) + 2u * job->rows;
}

static void regress(linmdp_learner *m)
{
    next_stage(&m->job, REGRESSION);
    linmdp_regression_begin(m);
}

/* What follows a stage that is done. */
static void go_on(linmdp_learner *m)
{
    linmdp_job *job = &m->job;
    switch (job->stage) {
    case COLUMNS:
        next_stage(job, TRIANGLE);
        break;
    case TRIANGLE:
        if (job->wide)
            regress(m);
        else
            next_stage(job, VALUES);
        break;
    case VALUES:
        if (!set_targets(m))
            job->round = LINMDP_EVIDENCE;
        regress(m);
        break;
    case REGRESSION:
        if (job->round < LINMDP_EVIDENCE) {
            next_stage(job, EVIDENCE);
            linmdp_evidence_begin(m);
        } else {
            next_stage(job, DEVIATIONS);
        }
        break;
    case EVIDENCE:
        job->round++;
        regress(m);
        break;
    case DEVIATIONS:
        next_stage(job, LEVELS);
        break;
    default:
        next_stage(job, NOTHING);
    }
}

uint32_t linmdp_job_unit(linmdp_learner *m)
{
    linmdp_job *job = &m->job;
    const linmdp_plan *plan = made(m);
    while (job->stage != NOTHING) {
        uint32_t cost = 0;
        if (job->stage == COLUMNS)
            cost = add_column(m);
        else if (job->stage == TRIANGLE && job->at < plan->features)
            cost = invert_row(m, job->at++);
        else if (job->stage == VALUES && job->at < plan->points)
            cost = value_point(m, job->at++);
        else if (job->stage == REGRESSION)
            cost = linmdp_regression_unit(m);
        else if (job->stage == EVIDENCE)
            cost = linmdp_evidence_unit(m);
        else if (job->stage == DEVIATIONS && job->at < plan->points)
            cost = deviate(m, job->at++);
        else if (job->stage == LEVELS && job->at < plan->steps)
            cost = plan_level(m, ++job->at);
        if (cost > 0)
            return cost;
        go_on(m);
    }
    return 0;
}
