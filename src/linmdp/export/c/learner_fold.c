/* linmdp_learner.c: LSVI-UCB-Fold. All data count, none of it is kept.
 *
 * Least-squares value iteration needs z_h = sum_i phi_i V(s'_i) for a V that changes with every planning. The newest
 * samples are in a buffer. When it is full they are folded into c = sum phi V_ref(s') and J = sum phi psi', where psi is
 * the slope of V(s') in the weights w of the next step. Later
 *
 *     z = c + J (w - w_ref) + D g + sum over the buffer of phi V(s'),      D = sum over the folded of phi phi',
 *
 * where g is the ridge regression of what the slopes leave over, V - V_ref - psi'(w - w_ref), on phi, over a few folded
 * samples that were kept: the probes. D is never formed: D = Lambda - lam I - sum over the buffer of phi phi'.
 */
#include <stddef.h>

#include "linmdp_common.h"
#include "linmdp_draws.h"

#define LINMDP_LATE (UINT32_MAX / 2) /* counters stop here, and what depends on them stays as it is */

static uint32_t next_key(linmdp_learner *m) { return linmdp_draw(m->seed, m->draws++); }

/* V_{h+1} at the next state of a sample of step h, and its best action: the first of equals, -1 where V has no slope. */
static int ahead(const linmdp_learner *m, unsigned h, const linmdp_sample *sample, linmdp_wide *V, linmdp_best *best)
{
    linmdp_seen seen;
    linmdp_wide q[LINMDP_A];
    *V = 0;
    *best = -1;
    if (!sample->alive)
        return LINMDP_OK;
    linmdp_look(linmdp_recall(&sample->next), &seen);
    if (linmdp_optimistic(m->step[h + 1].q.w, m->scratch.factor, h + 1, &seen, q) != 0)
        return LINMDP_NOT_A_NUMBER;
    const unsigned first = linmdp_first_best(q, LINMDP_TIE);
    *V = q[first];
    if (q[first] < linmdp_cap(h + 1) - LINMDP_TIE)
        *best = (linmdp_best)first;
    return LINMDP_OK;
}

/* phi(s, a) of a sample */
static void features_of(const linmdp_sample *sample, linmdp_real phi[LINMDP_D])
{
    linmdp_seen seen;
    linmdp_look(linmdp_recall(&sample->state), &seen);
    linmdp_phi(&seen, sample->action, phi);
}

#if LINMDP_SLOPES
/* psi = phi(s', best), or 0 where there is no best action */
static void slope_of(const linmdp_sample *sample, linmdp_best best, linmdp_real psi[LINMDP_D])
{
    linmdp_seen seen;
    if (best < 0) {
        for (size_t i = 0; i < LINMDP_D; i++)
            psi[i] = 0;
        return;
    }
    linmdp_look(linmdp_recall(&sample->next), &seen);
    linmdp_phi(&seen, (unsigned)best, psi);
}

/* J to the slopes of today, with the buffer in it. LINMDP_COLUMNS columns at a time; J[k] is column k.
 * The factor of the probes' matrix is in the scratch space if anything was folded before. */
static void fold_slopes(linmdp_learner *m, unsigned h)
{
    linmdp_past *past = &m->past[h];
    linmdp_wide(*block)[LINMDP_D] = m->scratch.block;
    linmdp_real phi[LINMDP_D], psi[LINMDP_D], old[LINMDP_D];
    for (size_t k = 0; k < LINMDP_D; k += LINMDP_COLUMNS) {
        const size_t width = k + LINMDP_COLUMNS <= LINMDP_D ? LINMDP_COLUMNS : LINMDP_D - k;
        for (size_t b = 0; b < width; b++)
            for (size_t i = 0; i < LINMDP_D; i++)
                block[b][i] = 0;
        for (size_t i = 0; i < past->probes; i++) {
            if (m->scratch.probe_best[i] == past->best_ref[i])
                continue; /* the slope is what it was */
            features_of(&past->probe[i], phi);
            slope_of(&past->probe[i], m->scratch.probe_best[i], psi);
            slope_of(&past->probe[i], past->best_ref[i], old);
            for (size_t b = 0; b < width; b++)
                linmdp_add_scaled(block[b], (linmdp_wide)psi[k + b] - (linmdp_wide)old[k + b], phi);
        }
        if (past->folded)
            for (size_t b = 0; b < width; b++) {
                linmdp_solve(m->scratch.matrix, block[b]);
                linmdp_add_product(past->J[k + b], m->step[h].Lambda, block[b]);
                for (size_t i = 0; i < LINMDP_D; i++)
                    past->J[k + b][i] -= LINMDP_LAMBDA * block[b][i];
                LINMDP_COUNT_WIDE(LINMDP_D);
            }
        for (size_t i = 0; i < m->count[h]; i++) {
            features_of(&past->buffer[i], phi);
            slope_of(&past->buffer[i], m->scratch.buffer_best[i], psi);
            for (size_t b = 0; b < width; b++)
                linmdp_add_scaled(past->J[k + b], (linmdp_wide)psi[k + b] - linmdp_dot(phi, block[b]), phi);
        }
    }
}
#endif

#if LINMDP_PROBES_FOLLOW
/* g, the regression of the remainder at the probes, and z += J (w - w_ref) + Lambda g - lam g. */
static int follow(linmdp_learner *m, unsigned h, linmdp_wide z[LINMDP_D], linmdp_wide g[LINMDP_D])
{
    linmdp_past *past = &m->past[h];
    linmdp_scratch *scratch = &m->scratch;
    linmdp_real phi[LINMDP_D];
#if LINMDP_SLOPES
    linmdp_wide moved[LINMDP_D];
    linmdp_real psi[LINMDP_D];
    for (size_t k = 0; k < LINMDP_D; k++) {
        moved[k] = m->step[h + 1].q.w[k] - past->w_ref[k];
        for (size_t i = 0; i < LINMDP_D; i++)
            z[i] += past->J[k][i] * moved[k];
        LINMDP_COUNT_WIDE(LINMDP_D);
    }
#endif
    linmdp_set_diagonal(scratch->matrix, LINMDP_LAMBDA);
    for (size_t i = 0; i < past->probes; i++) {
        if (ahead(m, h, &past->probe[i], &scratch->probe_V[i], &scratch->probe_best[i]) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        linmdp_wide rest = scratch->probe_V[i] - past->V_ref[i];
#if LINMDP_SLOPES
        slope_of(&past->probe[i], past->best_ref[i], psi);
        rest -= linmdp_dot(psi, moved);
#endif
        features_of(&past->probe[i], phi);
        linmdp_add_outer(scratch->matrix, phi);
        linmdp_add_scaled(g, rest, phi);
    }
    if (linmdp_factor(scratch->matrix) != 0)
        return LINMDP_NOT_A_NUMBER;
    linmdp_solve(scratch->matrix, g);
    linmdp_add_product(z, m->step[h].Lambda, g);
    for (size_t i = 0; i < LINMDP_D; i++)
        z[i] -= LINMDP_LAMBDA * g[i];
    LINMDP_COUNT_WIDE(LINMDP_D);
    return LINMDP_OK;
}
#endif

static void swap(linmdp_sample *sample, linmdp_wide *V, linmdp_best *best, size_t i, size_t j)
{
    const linmdp_sample s = sample[i];
    const linmdp_wide v = V[i];
    const linmdp_best b = best[i];
    sample[i] = sample[j], V[i] = V[j], best[i] = best[j];
    sample[j] = s, V[j] = v, best[j] = b;
}

/* Bring a random choice of `wanted` out of n to the front, in random order. */
static void choose(linmdp_learner *m, linmdp_sample *sample, linmdp_wide *V, linmdp_best *best, size_t n, size_t wanted)
{
    const uint32_t key = next_key(m);
    for (size_t i = 0; i < wanted; i++)
        swap(sample, V, best, i, i + linmdp_below(key, (uint32_t)i, (uint32_t)(n - i)));
}

/* How many of LINMDP_M probes are to come from `fresh` new samples, if all that was ever folded has the same chance. */
static size_t fresh_probes(linmdp_learner *m, uint32_t fresh, uint32_t old)
{
#if LINMDP_RESERVOIR
    if (old > 0) {
        const uint32_t key = next_key(m);
        const uint32_t all = fresh + old, drawn = all < LINMDP_M ? all : LINMDP_M;
        uint32_t left = fresh;
        for (uint32_t i = 0; i < drawn; i++)
            left -= (uint32_t)(linmdp_below(key, i, all - i) < left);
        return fresh - left;
    }
#else
    (void)m;
    (void)old;
#endif
    return fresh;
}

/* New probes out of the old ones and the buffer, with the V and the best actions of today. */
static void choose_probes(linmdp_learner *m, unsigned h)
{
    linmdp_past *past = &m->past[h];
    linmdp_scratch *scratch = &m->scratch;
    const size_t n = m->count[h], old = past->probes;
    size_t fresh = fresh_probes(m, (uint32_t)n, past->folded);
    if (n + old < LINMDP_M)
        fresh = n; /* room for all */
    else if (fresh < LINMDP_M - old)
        fresh = LINMDP_M - old;
    const size_t kept = old < LINMDP_M - fresh ? old : LINMDP_M - fresh;
    choose(m, past->probe, past->V_ref, past->best_ref, old, kept);
    choose(m, past->buffer, scratch->buffer_V, scratch->buffer_best, n, fresh);
    for (size_t i = 0; i < fresh; i++) {
        past->probe[kept + i] = past->buffer[i];
        past->V_ref[kept + i] = scratch->buffer_V[i];
        past->best_ref[kept + i] = scratch->buffer_best[i];
    }
    past->probes = (uint16_t)(kept + fresh);
}

/* The buffer of step h into the sums: z is what they stand for now. */
static int fold(linmdp_learner *m, unsigned h, const linmdp_wide z[LINMDP_D])
{
    linmdp_past *past = &m->past[h];
#if LINMDP_SLOPES
    fold_slopes(m, h);
#endif
    for (size_t i = 0; i < LINMDP_D; i++) {
        past->c[i] = z[i];
        past->w_ref[i] = m->step[h + 1].q.w[i];
    }
    for (size_t i = 0; i < past->probes; i++) {
#if !LINMDP_PROBES_FOLLOW
        if (ahead(m, h, &past->probe[i], &m->scratch.probe_V[i], &m->scratch.probe_best[i]) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
#endif
        past->V_ref[i] = m->scratch.probe_V[i];
        past->best_ref[i] = m->scratch.probe_best[i];
    }
    choose_probes(m, h);
    past->folded = past->folded < LINMDP_LATE ? past->folded + m->count[h] : past->folded;
    return LINMDP_OK;
}

/* z_h over all samples: those in the buffer exactly, those folded as the sums that stand for them. */
static int target(linmdp_learner *m, unsigned h, int full, linmdp_wide z[LINMDP_D])
{
    linmdp_past *past = &m->past[h];
    linmdp_scratch *scratch = &m->scratch;
    linmdp_real phi[LINMDP_D];
    linmdp_wide g[LINMDP_D];
    for (size_t i = 0; i < LINMDP_D; i++) {
        z[i] = past->c[i];
        g[i] = 0;
    }
#if LINMDP_PROBES_FOLLOW
    if (past->folded && follow(m, h, z, g) != LINMDP_OK)
        return LINMDP_NOT_A_NUMBER;
#endif
    for (size_t i = 0; i < m->count[h]; i++) {
        if (ahead(m, h, &past->buffer[i], &scratch->buffer_V[i], &scratch->buffer_best[i]) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        features_of(&past->buffer[i], phi);
        linmdp_add_scaled(z, scratch->buffer_V[i] - linmdp_dot(phi, g), phi);
    }
    return full ? fold(m, h, z) : LINMDP_OK;
}

/* Backwards over the steps. A full buffer is folded on the way, with the V of this planning. */
static int plan(linmdp_learner *m, int full)
{
    linmdp_wide z[LINMDP_D];
    for (unsigned h = LINMDP_H; h-- > 0;) {
        for (size_t i = 0; i < LINMDP_D; i++)
            z[i] = 0;
        if (h + 1 < LINMDP_H && target(m, h, full, z) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        if (linmdp_regress(&m->step[h], z, m->scratch.factor) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
    }
    for (unsigned h = 0; full && h < LINMDP_H; h++)
        m->count[h] = 0;
    return LINMDP_OK;
}

int linmdp_init(linmdp_learner *m, uint32_t seed)
{
    if (m == NULL)
        return LINMDP_NULL;
    for (unsigned h = 0; h < LINMDP_H; h++) {
        linmdp_clear_sums(&m->step[h]);
        linmdp_clear_weights(&m->step[h].q);
        m->count[h] = 0;
    }
    for (unsigned h = 0; h + 1 < LINMDP_H; h++) {
        linmdp_past *past = &m->past[h];
        for (size_t i = 0; i < LINMDP_D; i++) {
            past->c[i] = past->w_ref[i] = 0;
#if LINMDP_SLOPES
            for (size_t k = 0; k < LINMDP_D; k++)
                past->J[k][i] = 0;
#endif
        }
        past->folded = 0;
        past->probes = 0;
    }
    m->seed = seed;
    m->draws = m->tie_key = 0;
    m->episodes = m->due = 0;
    m->next = LINMDP_H;
    return LINMDP_OK;
}

int linmdp_begin_episode(linmdp_learner *m)
{
    int full = 0;
    if (m == NULL)
        return LINMDP_NULL;
    m->tie_key = next_key(m);
    for (unsigned h = 0; h < LINMDP_H; h++)
        full |= m->count[h] == LINMDP_M;
    if (full || m->episodes >= m->due) {
        const uint32_t wait = (uint32_t)(LINMDP_REPLAN * (linmdp_wide)m->episodes);
        m->next = LINMDP_H;
        if (plan(m, full) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        m->due = m->episodes + (wait > 1 ? wait : 1);
    }
    m->episodes += (uint32_t)(m->episodes < LINMDP_LATE);
    m->next = 0;
    return LINMDP_OK;
}

int linmdp_observe(linmdp_learner *m, unsigned h, linmdp_state state, int action, linmdp_real reward,
                   linmdp_state next_state, int terminated)
{
    linmdp_seen seen;
    linmdp_real phi[LINMDP_D];
    const int status = linmdp_check(m, h, state, action, reward, next_state);
    if (status != LINMDP_OK)
        return status;
    linmdp_look(state, &seen);
    linmdp_phi(&seen, (unsigned)action, phi);
    linmdp_add_sample(&m->step[h], phi, reward);
    if (h + 1 < LINMDP_H) {
        linmdp_sample *sample = &m->past[h].buffer[m->count[h]];
        sample->state = linmdp_keep(state);
        sample->next = linmdp_keep(next_state);
        sample->action = (linmdp_index_a)action;
        sample->alive = !terminated;
    }
    m->count[h]++;
    m->next = (uint16_t)(h + 1);
    return LINMDP_OK;
}
