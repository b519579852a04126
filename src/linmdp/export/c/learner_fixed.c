/* linmdp_learner.c: LSVI-UCB-Fixed (Algorithm 2 of the paper): phases of LINMDP_PHASE episodes.
 *
 * In every episode of a phase but the last all steps are planned again, with all samples of the phase. The last episode
 * only deletes them, stores nothing, and acts as the one before.
 */
#include <stddef.h>

#include "linmdp_common.h"

#if LINMDP_COUNTS
/* z = N V */
int linmdp_target(linmdp_learner *m, unsigned h, const linmdp_wide ahead[LINMDP_D], linmdp_wide beta,
                  linmdp_wide z[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        z[i] = 0;
    for (unsigned s = 0; s < LINMDP_S; s++) {
        const linmdp_wide *column = m->store[LINMDP_GROUP(h)].N[s];
        const linmdp_kept kept = linmdp_keep(s);
        linmdp_wide V;
        size_t i = 0;
        while (i < LINMDP_D && column[i] == 0)
            i++;
        if (i == LINMDP_D)
            continue; /* no sample ended here */
        if (linmdp_state_value(&m->core, LINMDP_AFTER(h), ahead, beta, &kept, &V) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        for (i = 0; i < LINMDP_D; i++)
            z[i] += V * column[i];
        LINMDP_COUNT_WIDE(LINMDP_D);
    }
    return LINMDP_OK;
}

static void keep(linmdp_store *store, linmdp_state state, int action, const linmdp_real phi[LINMDP_D],
                 linmdp_state next_state, int terminated)
{
    (void)state;
    (void)action;
    if (!terminated) /* the value after the end is 0 */
        linmdp_add_scaled(store->N[next_state], 1, phi);
}

static void forget(linmdp_store *store)
{
    for (size_t s = 0; s < LINMDP_S; s++)
        for (size_t i = 0; i < LINMDP_D; i++)
            store->N[s][i] = 0;
}
#else
/* z = sum phi(s, a) V(s') over the samples */
int linmdp_target(linmdp_learner *m, unsigned h, const linmdp_wide ahead[LINMDP_D], linmdp_wide beta,
                  linmdp_wide z[LINMDP_D])
{
    const linmdp_store *store = &m->store[LINMDP_GROUP(h)];
    linmdp_real phi[LINMDP_D];
    linmdp_wide V;
    for (size_t i = 0; i < LINMDP_D; i++)
        z[i] = 0;
    for (size_t i = 0; i < store->count; i++) {
        const linmdp_sample *sample = &store->sample[i];
        if (!sample->alive)
            continue;
        if (linmdp_state_value(&m->core, LINMDP_AFTER(h), ahead, beta, &sample->next, &V) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        linmdp_features_of(&sample->state, sample->action, phi);
        linmdp_add_scaled(z, V, phi);
    }
    return LINMDP_OK;
}

static void keep(linmdp_store *store, linmdp_state state, int action, const linmdp_real phi[LINMDP_D],
                 linmdp_state next_state, int terminated)
{
    linmdp_sample *sample = &store->sample[store->count++];
    (void)phi;
    sample->state = linmdp_keep(state);
    sample->next = linmdp_keep(next_state);
    sample->action = (linmdp_index_a)action;
    sample->alive = !terminated;
}

static void forget(linmdp_store *store) { store->count = 0; }
#endif

/* Lines 17 to 19: delete the samples. The weights stay, and act until the next planning. */
static void reset(linmdp_learner *m)
{
    linmdp_clear_sums(&m->core);
    for (unsigned g = 0; g < LINMDP_STORES; g++)
        forget(&m->store[g]);
    m->phase = 0;
}

int linmdp_init(linmdp_learner *m, uint32_t seed)
{
    if (m == NULL)
        return LINMDP_NULL;
    linmdp_core_init(&m->core, seed);
    reset(m);
    m->learning = 0;
    return LINMDP_OK;
}

int linmdp_begin_episode(linmdp_learner *m)
{
    if (m == NULL)
        return LINMDP_NULL;
    m->phase++;
    m->learning = m->phase < LINMDP_PHASE; /* line 6 */
    linmdp_open(&m->core, m->learning);
    if (!m->learning) {
        reset(m);
    } else if (linmdp_plan(m) != LINMDP_OK || linmdp_renew_width(m) != LINMDP_OK) {
        m->core.open = 0;
        return LINMDP_NOT_A_NUMBER;
    }
    return LINMDP_OK;
}

int linmdp_observe(linmdp_learner *m, unsigned h, linmdp_state state, int action, linmdp_real reward,
                   linmdp_state next_state, int terminated)
{
    linmdp_real phi[LINMDP_D];
    const int status = linmdp_check(m, h, state, action, reward, next_state);
    if (status != LINMDP_OK)
        return status;
    linmdp_note(&m->core, h, state, action, reward, terminated, phi);
    if (m->learning) {
        linmdp_add_sample(&m->core, h, phi, reward);
        if (LINMDP_GROUPS == 1 || h + 1 < LINMDP_H)
            keep(&m->store[LINMDP_GROUP(h)], state, action, phi, next_state, terminated);
    }
    return LINMDP_OK;
}
