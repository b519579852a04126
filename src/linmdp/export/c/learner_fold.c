/* linmdp_learner.c: LSVI-UCB-Fold. All data count, none of it is kept.
 *
 * Least-squares value iteration needs z_h = sum_i phi_i V(s'_i) for a V that changes with every planning. The newest
 * samples are in a buffer. When it is full they are folded into c = sum phi V_ref(s') and J = sum phi psi', where psi is
 * the slope of V(s') in the weights w of the next step. Later
 *
 *     z = c + J (w - w_ref) + D g + sum over the buffer of phi V(s'),      D = sum over the folded of phi phi',
 *
 * where g is the ridge regression of what the slopes leave over, V - V_ref - psi'(w - w_ref), on phi, over a few folded
 * samples that were kept: the probes. D is never formed: D = Lambda - lam I - sum over the buffer of phi phi'. Where states
 * are finite a transition that comes again is counted, and the most frequent are never folded.
 */
#include <stddef.h>

#include "linmdp_common.h"
#include "linmdp_draws.h"

/* V of what followed a sample of step h, and its best action; -1 where V has no slope. */
static int value_ahead(const linmdp_learner *m, unsigned h, const linmdp_wide ahead[LINMDP_D], linmdp_wide beta,
                       const linmdp_sample *sample, linmdp_wide *V, linmdp_best *best)
{
    *V = 0;
    *best = -1;
    if (!sample->alive)
        return LINMDP_OK;
    return linmdp_state_value(&m->core, LINMDP_AFTER(h), ahead, beta, &sample->next, V, best);
}

#if LINMDP_SLOPES
/* psi = phi(s', best), or 0 where there is no best action */
static void slope_of(const linmdp_sample *sample, linmdp_best best, linmdp_real psi[LINMDP_D])
{
    if (best >= 0)
        linmdp_features_of(&sample->next, (unsigned)best, psi);
    else
        for (size_t i = 0; i < LINMDP_D; i++)
            psi[i] = 0;
}

/* Some columns of J, from k on, to the slopes of today and with the buffer in them. */
static void fold_columns(linmdp_learner *m, unsigned h, size_t k, size_t width)
{
    linmdp_past *past = &m->past[h];
    const linmdp_store *store = &m->store[LINMDP_GROUP(h)];
    linmdp_wide(*column)[LINMDP_D] = m->scratch.columns;
    linmdp_real phi[LINMDP_D], psi[LINMDP_D], old[LINMDP_D];
    for (size_t b = 0; b < width; b++)
        for (size_t i = 0; i < LINMDP_D; i++)
            column[b][i] = 0;
    for (size_t i = 0; i < store->probes; i++) {
        const linmdp_sample *probe = &store->probe[i];
        if (m->scratch.probe_best[i] == past->best_ref[i])
            continue; /* the slope is what it was */
        linmdp_features_of(&probe->state, probe->action, phi);
        slope_of(probe, m->scratch.probe_best[i], psi);
        slope_of(probe, past->best_ref[i], old);
        for (size_t b = 0; b < width; b++)
            linmdp_add_scaled(column[b], ((linmdp_wide)psi[k + b] - (linmdp_wide)old[k + b]) * LINMDP_TIMES(probe), phi);
    }
    for (size_t b = 0; store->folded && b < width; b++) {
        linmdp_solve(m->scratch.matrix, column[b]); /* the factor is there, of `follow` */
        linmdp_add_product(past->J[k + b], m->core.group[LINMDP_GROUP(h)].Lambda, column[b]);
        for (size_t i = 0; i < LINMDP_D; i++)
            past->J[k + b][i] -= LINMDP_LAMBDA * column[b][i];
        LINMDP_COUNT_WIDE(LINMDP_D);
    }
    for (size_t i = 0; i < m->count[LINMDP_GROUP(h)]; i++) {
        const linmdp_sample *sample = &store->buffer[i];
        const int folded = i >= store->staying;
        linmdp_features_of(&sample->state, sample->action, phi);
        slope_of(sample, (linmdp_best)(folded ? m->scratch.buffer_best[i] : -1), psi);
        for (size_t b = 0; b < width; b++)
            linmdp_add_scaled(past->J[k + b],
                              ((linmdp_wide)psi[k + b] - linmdp_dot(phi, column[b])) * LINMDP_TIMES(sample), phi);
    }
}
#endif

#if LINMDP_PROBES_FOLLOW
/* g, the regression of the remainder at the probes, and z += J (w - w_ref) + Lambda g - lam g. */
static int follow(linmdp_learner *m, unsigned h, const linmdp_wide ahead[LINMDP_D], linmdp_wide beta,
                  linmdp_wide z[LINMDP_D], linmdp_wide g[LINMDP_D])
{
    const linmdp_past *past = &m->past[h];
    const linmdp_store *store = &m->store[LINMDP_GROUP(h)];
    linmdp_wide *matrix = m->scratch.matrix;
    linmdp_real phi[LINMDP_D];
#if LINMDP_SLOPES
    linmdp_wide moved[LINMDP_D];
    for (size_t k = 0; k < LINMDP_D; k++) {
        moved[k] = ahead[k] - past->w_ref[k];
        for (size_t i = 0; i < LINMDP_D; i++)
            z[i] += past->J[k][i] * moved[k];
        LINMDP_COUNT_WIDE(LINMDP_D);
    }
#endif
    linmdp_set_diagonal(matrix, LINMDP_LAMBDA);
    for (size_t i = 0; i < store->probes; i++) {
        const linmdp_sample *probe = &store->probe[i];
        linmdp_wide rest;
        linmdp_best best;
        if (value_ahead(m, h, ahead, beta, probe, &rest, &best) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        rest -= past->V_ref[i];
#if LINMDP_SLOPES
        m->scratch.probe_best[i] = best;
        slope_of(probe, past->best_ref[i], phi);
        rest -= linmdp_dot(phi, moved);
#endif
        linmdp_features_of(&probe->state, probe->action, phi);
        linmdp_add_outer(matrix, LINMDP_TIMES(probe), phi);
        linmdp_add_scaled(g, rest * LINMDP_TIMES(probe), phi);
    }
    if (linmdp_factor(matrix) != 0)
        return LINMDP_NOT_A_NUMBER;
    linmdp_solve(matrix, g);
    linmdp_add_product(z, m->core.group[LINMDP_GROUP(h)].Lambda, g);
    for (size_t i = 0; i < LINMDP_D; i++)
        z[i] -= LINMDP_LAMBDA * g[i];
    LINMDP_COUNT_WIDE(LINMDP_D);
    return LINMDP_OK;
}
#endif

/* Bring a random choice of `wanted` out of n to the front, in random order. */
static void choose(linmdp_learner *m, linmdp_sample *sample, size_t n, size_t wanted)
{
    const uint32_t key = linmdp_next_key(&m->core);
    for (size_t i = 0; i < wanted; i++) {
        const size_t j = i + linmdp_below(key, (uint32_t)i, (uint32_t)(n - i));
        const linmdp_sample kept = sample[i];
        sample[i] = sample[j];
        sample[j] = kept;
    }
}

/* How many of LINMDP_M probes are to come from `fresh` new samples, if all that was ever folded has the same chance. */
static size_t fresh_probes(linmdp_learner *m, uint32_t fresh, uint32_t old)
{
#if LINMDP_RESERVOIR
    if (old > 0) {
        const uint32_t key = linmdp_next_key(&m->core);
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

#if LINMDP_FINITE
#define ROWS (LINMDP_GROUPS == 1 ? LINMDP_H : 1) /* that an episode may add to a buffer */
#define LEFT (LINMDP_M > 5 * ROWS / 4 ? LINMDP_M - 5 * ROWS / 4 : 0)
#define STAY (LINMDP_M / 2 < LEFT ? LINMDP_M / 2 : LEFT)

/* 1 if a transition is among the STAY most frequent, the first of equals, and came twice at least */
static int is_frequent(const linmdp_sample *sample, size_t n, size_t i)
{
    size_t before = 0;
    for (size_t j = 0; j < n; j++)
        before += sample[j].times > sample[i].times || (j < i && sample[j].times == sample[i].times);
    return before + 1 <= STAY && sample[i].times > 1; /* STAY may be 0 */
}
#endif

/* Bring what stays in the buffer to its front. Both parts keep their order, so that ranks do not change on the way. */
static void sort_frequent(linmdp_learner *m, unsigned g)
{
    linmdp_store *store = &m->store[g];
    store->staying = 0;
#if LINMDP_FINITE
    for (size_t i = 0; i < m->count[g]; i++)
        if (is_frequent(store->buffer, m->count[g], i)) {
            const linmdp_sample kept = store->buffer[i];
            for (size_t j = i; j > store->staying; j--)
                store->buffer[j] = store->buffer[j - 1];
            store->buffer[store->staying++] = kept;
        }
#endif
}

/* New probes out of the old ones and what is folded. */
static void choose_probes(linmdp_learner *m, unsigned g)
{
    linmdp_store *store = &m->store[g];
    linmdp_sample *rare = store->buffer + store->staying;
    const size_t n = (size_t)(m->count[g] - store->staying), old = store->probes;
    size_t fresh = fresh_probes(m, (uint32_t)n, store->folded);
    if (n + old < LINMDP_M)
        fresh = n; /* room for all */
    else if (fresh < LINMDP_M - old)
        fresh = LINMDP_M - old;
    const size_t kept = old < LINMDP_M - fresh ? old : LINMDP_M - fresh;
    choose(m, store->probe, old, kept);
    choose(m, rare, n, fresh);
    for (size_t i = 0; i < fresh; i++)
        store->probe[kept + i] = rare[i];
    store->probes = (uint16_t)(kept + fresh);
    store->folded = store->folded < LINMDP_LATE ? store->folded + (uint32_t)n : store->folded;
}

/* What V and its best actions are at the new probes of step h. */
static int look_back(linmdp_learner *m, unsigned h, const linmdp_wide ahead[LINMDP_D], linmdp_wide beta)
{
    linmdp_past *past = &m->past[h];
    const linmdp_store *store = &m->store[LINMDP_GROUP(h)];
    for (size_t i = 0; i < store->probes; i++) {
        linmdp_best best;
        if (value_ahead(m, h, ahead, beta, &store->probe[i], &past->V_ref[i], &best) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
#if LINMDP_SLOPES
        past->best_ref[i] = best;
#endif
    }
    return LINMDP_OK;
}

/* The buffer into the sums of step h: z less what stays in the buffer is what they stand for now. */
static void fold_sums(linmdp_learner *m, unsigned h, const linmdp_wide ahead[LINMDP_D], const linmdp_wide z[LINMDP_D],
                      const linmdp_wide stays[LINMDP_D])
{
    linmdp_past *past = &m->past[h];
#if LINMDP_SLOPES
    for (size_t k = 0; k < LINMDP_D; k += LINMDP_COLUMNS)
        fold_columns(m, h, k, k + LINMDP_COLUMNS <= LINMDP_D ? LINMDP_COLUMNS : LINMDP_D - k);
    for (size_t i = 0; i < LINMDP_D; i++)
        past->w_ref[i] = ahead[i];
#else
    (void)ahead;
#endif
    for (size_t i = 0; i < LINMDP_D; i++)
        past->c[i] = z[i] - stays[i];
}

int linmdp_target(linmdp_learner *m, unsigned h, const linmdp_wide ahead[LINMDP_D], linmdp_wide beta, int fold,
                  linmdp_wide z[LINMDP_D])
{
    const linmdp_store *store = &m->store[LINMDP_GROUP(h)];
    linmdp_real phi[LINMDP_D];
    linmdp_wide g[LINMDP_D], stays[LINMDP_D];
    for (size_t i = 0; i < LINMDP_D; i++) {
        z[i] = m->past[h].c[i];
        g[i] = stays[i] = 0;
    }
#if LINMDP_PROBES_FOLLOW
    if (store->folded && follow(m, h, ahead, beta, z, g) != LINMDP_OK)
        return LINMDP_NOT_A_NUMBER;
#endif
    for (size_t i = 0; i < m->count[LINMDP_GROUP(h)]; i++) {
        const linmdp_sample *sample = &store->buffer[i];
        linmdp_wide V;
        linmdp_best best;
        if (value_ahead(m, h, ahead, beta, sample, &V, &best) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
#if LINMDP_SLOPES
        m->scratch.buffer_best[i] = best;
#endif
        linmdp_features_of(&sample->state, sample->action, phi);
        linmdp_add_scaled(z, (V - linmdp_dot(phi, g)) * LINMDP_TIMES(sample), phi);
        if (fold && i < store->staying)
            linmdp_add_scaled(stays, V * LINMDP_TIMES(sample), phi);
    }
    if (!fold)
        return LINMDP_OK;
    fold_sums(m, h, ahead, z, stays);
#if LINMDP_GROUPS > 1
    choose_probes(m, h); /* now, while the factor of the step ahead is there */
    return look_back(m, h, ahead, beta);
#else
    return LINMDP_OK;
#endif
}

/* Plan with a full buffer, and fold all of it but the most frequent transitions. */
static int plan_and_fold(linmdp_learner *m)
{
    for (unsigned g = 0; g < LINMDP_STORES; g++)
        sort_frequent(m, g);
    if (linmdp_plan(m, 1) != LINMDP_OK)
        return LINMDP_NOT_A_NUMBER;
#if LINMDP_GROUPS == 1
    choose_probes(m, 0);
    for (unsigned h = LINMDP_LEVELS == 1 ? LINMDP_AHEAD > 1 : LINMDP_AHEAD - 1; h-- > 0;)
        if (look_back(m, h, m->core.w[LINMDP_AFTER(h)], m->core.beta) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
#endif
    for (unsigned g = 0; g < LINMDP_STORES; g++)
        m->count[g] = m->store[g].staying;
    return LINMDP_OK;
}

/* One more transition, or one that is there already and has come again. */
static void keep(linmdp_learner *m, unsigned g, linmdp_state state, int action, linmdp_state next_state, int alive)
{
    linmdp_sample *sample = m->store[g].buffer;
    const linmdp_kept kept = linmdp_keep(state), next = linmdp_keep(next_state);
#if LINMDP_FINITE
    for (size_t i = m->count[g]; i-- > 0; sample++)
        if (sample->state == kept && sample->next == next && sample->action == (linmdp_index_a)action &&
            sample->alive == (uint8_t)alive && sample->times <= LINMDP_LATE) {
            sample->times++;
            return;
        }
    sample->times = 1;
#else
    sample += m->count[g];
#endif
    sample->state = kept;
    sample->next = next;
    sample->action = (linmdp_index_a)action;
    sample->alive = (uint8_t)alive;
    m->count[g]++;
}

int linmdp_init(linmdp_learner *m, uint32_t seed)
{
    if (m == NULL)
        return LINMDP_NULL;
    linmdp_core_init(&m->core, seed);
    for (size_t g = 0; g < LINMDP_STORES; g++) {
        m->count[g] = 0;
        m->store[g].folded = 0;
        m->store[g].probes = m->store[g].staying = 0;
    }
    for (size_t h = 0; h < LINMDP_PASTS; h++)
        for (size_t i = 0; i < LINMDP_D; i++) {
            m->past[h].c[i] = 0;
#if LINMDP_SLOPES
            m->past[h].w_ref[i] = 0;
            for (size_t k = 0; k < LINMDP_D; k++)
                m->past[h].J[k][i] = 0;
#endif
        }
    m->clock.episodes = m->clock.due = 0;
    return LINMDP_OK;
}

int linmdp_begin_episode(linmdp_learner *m)
{
    int full = 0;
    if (m == NULL)
        return LINMDP_NULL;
    for (unsigned g = 0; g < LINMDP_STORES; g++) /* no room for another episode */
        full |= m->count[g] + (LINMDP_GROUPS == 1 ? LINMDP_H : 1) > LINMDP_M;
    int planned = full || linmdp_is_due(&m->clock);
#if LINMDP_AUTO
    planned |= linmdp_width_beaten(&m->core.width);
#endif
    linmdp_open(&m->core, planned);
    if (planned) {
        linmdp_set_clock(&m->clock);
        if ((full ? plan_and_fold(m) : linmdp_plan(m, 0)) != LINMDP_OK || linmdp_renew_width(m) != LINMDP_OK) {
            m->core.open = 0;
            return LINMDP_NOT_A_NUMBER;
        }
    }
    linmdp_tick(&m->clock);
    return LINMDP_OK;
}

int linmdp_observe(linmdp_learner *m, unsigned h, linmdp_state state, int action, linmdp_real reward,
                   linmdp_state next_state, int terminated)
{
    linmdp_real phi[LINMDP_D];
    const unsigned g = LINMDP_GROUP(h);
    const int status = linmdp_check(m, h, state, action, reward, next_state);
    if (status != LINMDP_OK)
        return status;
    linmdp_note(&m->core, h, state, action, reward, terminated, phi);
    linmdp_add_sample(&m->core, h, phi, reward);
    if (LINMDP_AHEAD > 1 && g < LINMDP_STORES) /* nothing follows the last step of a task that is not stationary */
        keep(m, g, state, action, next_state, !terminated);
    return LINMDP_OK;
}
