/* linmdp_evidence.c: shares that make the targets most likely, and the regression on cells that they need.
 *
 * Work is done in units: a cell, a row or a pivot. Each returns its cost in multiply-adds.
 */
#include "linmdp_gp.h"

enum { SUMS, SWEEPS, COMMON, MOMENTS, FREE };

/* The plan that is made. */
static linmdp_plan *made(linmdp_learner *m) { return &m->plan[!m->acting]; }

static linmdp_wide within(linmdp_wide x, linmdp_wide low, linmdp_wide high) { return x < low ? low : x > high ? high : x; }

static void features_of(const linmdp_learner *m, unsigned point, unsigned n, linmdp_wide phi[LINMDP_P])
{
    for (unsigned i = 0; i < n; i++)
        phi[i] = (linmdp_wide)m->job.F[point][i];
}

/* The diagonal alone. */
static void set_diagonal(linmdp_wide matrix[LINMDP_TRIANGLE], unsigned n, linmdp_wide diagonal)
{
    linmdp_wide *row = matrix;
    for (unsigned i = 0; i < n; row += ++i) {
        for (unsigned j = 0; j < i; j++)
            row[j] = 0;
        row[i] = diagonal;
    }
}

static linmdp_wide trace(const linmdp_wide *matrix, unsigned n)
{
    linmdp_wide sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += matrix[i * (i + 1) / 2 + i];
    return sum;
}

static void negate(linmdp_wide *matrix, unsigned n)
{
    for (unsigned i = 0; i < n * (n + 1) / 2; i++)
        matrix[i] = -matrix[i];
}

static void next_part(linmdp_job *job, unsigned part)
{
    job->part = (uint8_t)part;
    job->at = 0;
}

void linmdp_regression_begin(linmdp_learner *m)
{
    linmdp_job *job = &m->job;
    linmdp_plan *plan = made(m);
    const linmdp_shares *s = &m->shares;
    plan->shares = *s;
    for (unsigned c = 0; c < plan->cells; c++)
        job->omega[c] = (linmdp_real)(1 / ((s->exact + (s->shared + s->own) * (linmdp_wide)job->left[job->state[c]]) /
                                               (linmdp_wide)job->stands[c] +
                                           s->noise / (linmdp_wide)job->times[c]));
    for (unsigned a = 0; a < LINMDP_A; a++) {
        set_diagonal(plan->fit.inverse[a], plan->features, 1 / s->own);
        for (unsigned i = 0; i < plan->features; i++)
            job->z[a][i] = 0;
    }
    next_part(job, SUMS);
}

/* Lambda += omega phi phi', z += omega y phi */
static uint32_t add_cell(linmdp_learner *m, unsigned c)
{
    linmdp_job *job = &m->job;
    linmdp_plan *plan = made(m);
    const unsigned n = plan->features, a = plan->action[c];
    linmdp_wide *row = plan->fit.inverse[a], phi[LINMDP_P];
    const linmdp_wide omega = (linmdp_wide)job->omega[c];
    features_of(m, job->state[c], n, phi);
    for (unsigned i = 0; i < n; row += ++i) {
        const linmdp_wide scaled = omega * phi[i];
        for (unsigned j = 0; j <= i; j++)
            row[j] += scaled * phi[j];
        job->z[a][i] += scaled * job->y[c];
    }
    return n * n;
}

/* S = I / shared + sum_a (I - Lambda_a^-1 / own) / own */
static void form_common(linmdp_plan *plan)
{
    const linmdp_shares *s = &plan->shares;
    const unsigned n = plan->features;
    set_diagonal(plan->fit.common, n, 1 / s->shared + LINMDP_A / s->own);
    for (unsigned a = 0; a < LINMDP_A; a++)
        for (unsigned i = 0; i < n * (n + 1) / 2; i++)
            plan->fit.common[i] -= plan->fit.inverse[a][i] / s->own / s->own;
}

uint32_t linmdp_regression_unit(linmdp_learner *m)
{
    linmdp_job *job = &m->job;
    linmdp_plan *plan = made(m);
    const unsigned n = plan->features;
    if (job->part == SUMS) {
        if (job->at < plan->cells)
            return add_cell(m, job->at++);
        next_part(job, SWEEPS);
    }
    if (job->part == SWEEPS && job->at < LINMDP_A * n) {
        const unsigned a = job->at / n;
        linmdp_sweep(plan->fit.inverse[a], n, job->at % n);
        if (++job->at % n == 0)
            negate(plan->fit.inverse[a], n);
        if (job->at < LINMDP_A * n)
            return n * n;
        form_common(plan);
        next_part(job, COMMON);
        return n * n;
    }
    if (job->part != COMMON || job->at == n)
        return 0;
    linmdp_sweep(plan->fit.common, n, job->at++);
    if (job->at == n)
        negate(plan->fit.common, n);
    return n * n;
}

void linmdp_evidence_begin(linmdp_learner *m)
{
    linmdp_job *job = &m->job;
    linmdp_weights(&made(m)->fit, m->shares.own, made(m)->features, job->z, job->w, job->w_0);
    job->over = job->over_trace = job->squares = job->trace = job->noise = job->noise_trace = job->free = 0;
    next_part(job, MOMENTS);
}

/* What one cell says. */
static void see_cell(linmdp_learner *m, unsigned c)
{
    linmdp_job *job = &m->job;
    linmdp_plan *plan = made(m);
    const unsigned n = plan->features, a = plan->action[c];
    linmdp_wide phi[LINMDP_P];
    features_of(m, job->state[c], n, phi);
    const linmdp_wide omega = (linmdp_wide)job->omega[c], times = (linmdp_wide)job->times[c];
    const linmdp_wide stands = (linmdp_wide)job->stands[c], left = (linmdp_wide)job->left[job->state[c]] / stands;
    const linmdp_wide alpha = omega * (job->y[c] - linmdp_dot(phi, job->w[a], n));
    const linmdp_wide sure = omega - omega * omega * linmdp_variance(&plan->fit, m->shares.own, n, a, phi);
    const linmdp_wide part = sure > 0 ? sure : 0;
    job->over += left * alpha * alpha;
    job->over_trace += left * part;
    job->squares += alpha * alpha / stands;
    job->trace += part / stands;
    job->noise += alpha * alpha / times;
    job->noise_trace += part / times;
}

/* Row i of how many weights of an action the data have fixed. */
static void see_row(linmdp_learner *m, unsigned a, unsigned i)
{
    linmdp_plan *plan = made(m);
    const unsigned n = plan->features;
    const linmdp_wide own = m->shares.own;
    linmdp_wide towards[LINMDP_P], shared[LINMDP_P];
    for (unsigned j = 0; j < n; j++)
        towards[j] = (i == j) - *linmdp_entry(plan->fit.inverse[a], i, j) / own;
    linmdp_product(plan->fit.common, n, towards, shared);
    m->job.free +=
        1 - (*linmdp_entry(plan->fit.inverse[a], i, i) + linmdp_dot(towards, shared, n)) / own;
}

static linmdp_wide renewed(const linmdp_job *job, linmdp_wide squares, linmdp_wide fixed)
{
    return within(squares / (fixed > 1e-300 ? fixed : 1e-300), LINMDP_LEAST * job->power, LINMDP_MOST * job->power);
}

static void renew(linmdp_learner *m)
{
    const linmdp_job *job = &m->job;
    const linmdp_plan *plan = made(m);
    const linmdp_shares old = m->shares;
    const unsigned n = plan->features;
    linmdp_wide squares = 0, again = LINMDP_EXACT * plan->again;
    for (unsigned a = 0; a < LINMDP_A; a++)
        for (unsigned i = 0; i < n; i++)
            squares += (job->w[a][i] - job->w_0[i]) * (job->w[a][i] - job->w_0[i]);
    linmdp_shares *s = &m->shares;
    s->shared = renewed(job, linmdp_dot(job->w_0, job->w_0, n) + old.shared * old.shared * job->over,
                        n - trace(plan->fit.common, n) / old.shared + old.shared * job->over_trace);
    s->own = renewed(job, squares + old.own * old.own * job->over, job->free + old.own * job->over_trace);
    s->exact = renewed(job, old.exact * job->squares, job->trace);
    s->noise = renewed(job, old.noise * old.noise * job->noise + job->within,
                       old.noise * job->noise_trace + job->visited - plan->cells);
    s->exact = s->exact > again * job->power ? s->exact : again * job->power;
    again = LINMDP_NOISE * LINMDP_NOISE * job->power;
    s->noise = s->noise > again ? s->noise : again;
    s->own = s->own > 1e-3 * s->shared ? s->own : 1e-3 * s->shared;
}

uint32_t linmdp_evidence_unit(linmdp_learner *m)
{
    linmdp_job *job = &m->job;
    const unsigned n = made(m)->features;
    if (job->part == MOMENTS) {
        if (job->at < made(m)->cells) {
            see_cell(m, job->at++);
            return 2 * n * n;
        }
        next_part(job, FREE);
    }
    if (job->at == LINMDP_A * n)
        return 0;
    see_row(m, job->at / n, job->at % n);
    if (++job->at == LINMDP_A * n)
        renew(m);
    return n * n;
}
