/* linmdp_learner.c: LSVI-UCB whose next states are merged into at most LINMDP_CENTRES centres for each regression.
 *
 * Least-squares value iteration needs z = sum_i phi_i V(s'_i) for a V that changes with every planning. If every s'_i is
 * the centre c to which it belongs, then z = sum_c N_c V(c), where N_c is the sum of its phi: exact as long as there is a
 * centre to each next state, and made anew at every planning.
 *
 * A next state within the radius of a centre belongs to it, or to a few centres around it with weights that bring the mean
 * of their features nearest to its own. Any other becomes a centre. When there are too many the radius grows, and centres
 * that are nearer to a heavier one than that are merged into those that stay.
 */
#include <math.h>
#include <stddef.h>

#include "linmdp_common.h"

static int value_of(const linmdp_learner *m, unsigned h, const linmdp_wide w[LINMDP_D], linmdp_wide beta,
                    const linmdp_point *point, linmdp_wide *V)
{
#if LINMDP_FINITE
    return linmdp_state_value(&m->core, h, w, beta, point, V);
#else
    return linmdp_seen_value(&m->core, h, w, beta, point, V);
#endif
}

int linmdp_target(linmdp_learner *m, unsigned h, const linmdp_wide ahead[LINMDP_D], linmdp_wide beta,
                  linmdp_wide z[LINMDP_D])
{
    const linmdp_store *store = &m->store[LINMDP_GROUP(h)];
    for (size_t i = 0; i < LINMDP_D; i++)
        z[i] = 0;
    for (size_t c = 0; c < store->count; c++) {
        const linmdp_centre *centre = &store->centre[c];
        linmdp_wide V;
        if (value_of(m, LINMDP_AFTER(h), ahead, beta, &centre->point, &V) != LINMDP_OK)
            return LINMDP_NOT_A_NUMBER;
        for (size_t i = 0; i < LINMDP_D; i++)
            z[i] += V * centre->N[i];
    }
    return LINMDP_OK;
}

#if LINMDP_MERGES
/* The distance of two states is that of their features, for the action for which it is largest. Where these are the same
 * numbers in the block of each action, there is one row. */
#if LINMDP_FINITE
enum { ROWS = LINMDP_A, LENGTH = LINMDP_D };
typedef linmdp_real linmdp_row;

static const linmdp_row *row_of(const linmdp_point *point, unsigned a, linmdp_row row[LENGTH])
{
    linmdp_features_of(point, a, row);
    return row;
}
#else
enum { ROWS = 1, LENGTH = LINMDP_P };
typedef linmdp_wide linmdp_row;

static const linmdp_row *row_of(const linmdp_point *point, unsigned a, linmdp_row row[LENGTH])
{
    (void)a;
    (void)row;
    return point->psi;
}
#endif

/* Row a of <x - y, x - z> */
static linmdp_wide row_product(const linmdp_point *x, const linmdp_point *y, const linmdp_point *z, unsigned a)
{
    linmdp_row scratch[3][LENGTH];
    const linmdp_row *p = row_of(x, a, scratch[0]), *q = row_of(y, a, scratch[1]);
    const linmdp_row *r = y == z ? q : row_of(z, a, scratch[2]);
    linmdp_wide sum = 0;
    for (size_t i = 0; i < LENGTH; i++)
        sum += ((linmdp_wide)p[i] - (linmdp_wide)q[i]) * ((linmdp_wide)p[i] - (linmdp_wide)r[i]);
    return sum;
}

/* The distance of two points, squared. */
static linmdp_wide squared_distance(const linmdp_point *x, const linmdp_point *y)
{
    linmdp_wide largest = 0;
    for (unsigned a = 0; a < ROWS; a++) {
        const linmdp_wide square = row_product(x, y, y, a);
        largest = square > largest ? square : largest;
    }
    return largest;
}

/* Centres that stand for a state, and their weights. */
typedef struct {
    unsigned count;
    uint16_t into[LINMDP_NEIGHBOURS];
    linmdp_wide weight[LINMDP_NEIGHBOURS];
} linmdp_shares;

typedef linmdp_wide linmdp_products[LINMDP_NEIGHBOURS][LINMDP_NEIGHBOURS];

/* x = P^-1 (1, ..., 1) by elimination, for a P of n rows that is positive definite */
static void solve_ones(unsigned n, linmdp_products P, linmdp_wide x[LINMDP_NEIGHBOURS])
{
    linmdp_products rest;
    for (unsigned i = 0; i < n; i++) {
        x[i] = 1;
        for (unsigned j = 0; j < n; j++)
            rest[i][j] = P[i][j];
    }
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = k + 1; i < n; i++) {
            const linmdp_wide part = rest[i][k] / rest[k][k];
            for (unsigned j = k; j < n; j++)
                rest[i][j] -= part * rest[k][j];
            x[i] -= part * x[k];
        }
    for (unsigned i = n; i-- > 0;) {
        for (unsigned j = i + 1; j < n; j++)
            x[i] -= rest[i][j] * x[j];
        x[i] /= rest[i][i];
    }
}

/* Weights of at least 0 with the sum 1: a centre whose weight would be negative is left out. */
static void weigh(linmdp_shares *shares, linmdp_products P)
{
    linmdp_wide sum = 0;
    for (;;) {
        unsigned kept = 0;
        solve_ones(shares->count, P, shares->weight);
        for (unsigned i = 0; i < shares->count; i++) {
            if (!(shares->weight[i] > 0))
                continue;
            shares->into[kept] = shares->into[i];
            shares->weight[kept] = shares->weight[i];
            for (unsigned j = 0; j < shares->count; j++) /* rows move up, then columns; both stay in order */
                P[kept][j] = P[i][j];
            for (unsigned j = 0; j < shares->count; j++)
                P[j][kept] = P[j][i];
            kept++;
        }
        if (kept == shares->count)
            break;
        shares->count = kept;
    }
    for (unsigned i = 0; i < shares->count; i++)
        sum += shares->weight[i];
    for (unsigned i = 0; i < shares->count; i++)
        shares->weight[i] /= sum;
}

/* The centres that stay and are nearest to a point, in order; how many, and their distances squared. */
static unsigned nearest(const linmdp_store *store, const linmdp_point *point, uint16_t found[LINMDP_NEIGHBOURS],
                        linmdp_wide square[LINMDP_NEIGHBOURS])
{
    unsigned n = 0;
    for (unsigned c = 0; c < store->count; c++) {
        if (!store->stays[c])
            continue;
        const linmdp_wide own = squared_distance(point, &store->centre[c].point);
        unsigned at = n;
        while (at > 0 && own < square[at - 1])
            at--;
        if (at == LINMDP_NEIGHBOURS)
            continue;
        n += n < LINMDP_NEIGHBOURS;
        for (unsigned i = n - 1; i > at; i--) {
            square[i] = square[i - 1];
            found[i] = found[i - 1];
        }
        square[at] = own;
        found[at] = (uint16_t)c;
    }
    return n;
}

/* The nearest centre, or several within `reach`, to stand for a point; none where even that is beyond `limit`. Both are
 * squared. */
static void share(const linmdp_store *store, const linmdp_point *point, linmdp_wide reach, linmdp_wide limit,
                  linmdp_shares *shares)
{
    linmdp_wide square[LINMDP_NEIGHBOURS];
    linmdp_products P;
    const unsigned n = nearest(store, point, shares->into, square);
    shares->count = 0;
    if (n == 0 || square[0] > limit * (1 + LINMDP_SLACK))
        return;
    while (square[0] > 0 && shares->count < n && square[shares->count] <= reach * (1 + LINMDP_SLACK))
        shares->count++;
    if (shares->count < 2) {
        shares->count = 1;
        shares->weight[0] = 1;
        return;
    }
    linmdp_wide trace = 0;
    for (unsigned i = 0; i < shares->count; i++) {
        for (unsigned j = 0; j <= i; j++) {
            P[i][j] = 0;
            for (unsigned a = 0; a < ROWS; a++)
                P[i][j] += row_product(point, &store->centre[shares->into[i]].point,
                                       &store->centre[shares->into[j]].point, a);
            P[j][i] = P[i][j];
        }
        trace += P[i][i];
    }
    for (unsigned i = 0; i < shares->count; i++)
        P[i][i] += LINMDP_SHARE_RIDGE * trace;
    weigh(shares, P);
}

/* The heaviest first; equals keep their order. */
static void sort_heaviest(linmdp_store *store)
{
    for (size_t i = 1; i < store->count; i++) {
        const linmdp_centre moved = store->centre[i];
        size_t at = i;
        for (; at > 0 && store->centre[at - 1].times < moved.times; at--)
            store->centre[at] = store->centre[at - 1];
        store->centre[at] = moved;
    }
}

/* The radius at which two centres are merged, at least. */
static linmdp_wide wider(const linmdp_store *store)
{
    linmdp_wide least = LINMDP_WIDE_MAX;
    for (size_t i = 1; i < store->count; i++)
        for (size_t j = 0; j < i; j++) {
            const linmdp_wide square = squared_distance(&store->centre[i].point, &store->centre[j].point);
            least = square < least ? square : least;
        }
    least = LINMDP_WIDE_SQRT(least);
    return LINMDP_WIDER * store->radius > least ? LINMDP_WIDER * store->radius : least;
}

/* The samples of a centre now belong to those that stand for it. */
static void merge(linmdp_store *store, const linmdp_centre *centre)
{
    linmdp_shares shares;
    share(store, &centre->point, store->radius * store->radius, LINMDP_WIDE_MAX, &shares);
    for (unsigned k = 0; k < shares.count; k++) {
        linmdp_centre *into = &store->centre[shares.into[k]];
        for (size_t i = 0; i < LINMDP_D; i++)
            into->N[i] += shares.weight[k] * centre->N[i];
        into->times += shares.weight[k] * centre->times;
    }
}

/* Keep the centres that stay, in their order. */
static void close_up(linmdp_store *store)
{
    size_t kept = 0;
    for (size_t c = 0; c < store->count; c++)
        if (store->stays[c]) {
            store->centre[kept] = store->centre[c];
            store->stays[kept++] = 1;
        }
    store->count = (uint16_t)kept;
}

/* Merge centres that are nearer to each other than a larger radius, into the heaviest. */
static void coarsen(linmdp_store *store)
{
    sort_heaviest(store);
    store->radius = wider(store);
    const linmdp_wide within = store->radius * store->radius * (1 + LINMDP_SLACK);
    for (size_t i = 0; i < store->count; i++) {
        store->stays[i] = 1;
        for (size_t j = 0; j < i && store->stays[i]; j++)
            if (store->stays[j] && squared_distance(&store->centre[i].point, &store->centre[j].point) <= within)
                store->stays[i] = 0;
    }
    for (size_t i = 0; i < store->count; i++)
        if (!store->stays[i])
            merge(store, &store->centre[i]);
    close_up(store);
}
#endif

/* A new centre, at a place that is free. */
static void add_centre(linmdp_store *store, const linmdp_point *point)
{
    linmdp_centre *centre = &store->centre[store->count];
    for (size_t i = 0; i < LINMDP_D; i++)
        centre->N[i] = 0;
    centre->times = 0;
    centre->point = *point;
#if LINMDP_MERGES
    store->stays[store->count] = 1;
#endif
    store->count++;
}

static void add_to(linmdp_centre *centre, linmdp_wide weight, const linmdp_real phi[LINMDP_D])
{
    linmdp_add_scaled(centre->N, weight, phi);
    centre->times += weight;
}

/* One more sample that went on to this state. */
static void keep(linmdp_store *store, linmdp_state next_state, const linmdp_real phi[LINMDP_D])
{
    linmdp_point point;
#if LINMDP_FINITE
    point = linmdp_keep(next_state);
    for (size_t c = 0; c < store->count; c++)
        if (store->centre[c].point == point) {
            add_to(&store->centre[c], 1, phi);
            return;
        }
#else
    linmdp_look(next_state, &point);
#endif
#if LINMDP_MERGES
    linmdp_shares shares;
    const linmdp_wide limit = store->radius * store->radius;
    shares.count = 0;
    if (!LINMDP_FINITE || store->radius > 0)
        share(store, &point, LINMDP_REACH * LINMDP_REACH * limit, limit, &shares);
    for (unsigned k = 0; k < shares.count; k++)
        add_to(&store->centre[shares.into[k]], shares.weight[k], phi);
    if (shares.count > 0)
        return;
#endif
    add_centre(store, &point);
    add_to(&store->centre[store->count - 1], 1, phi);
#if LINMDP_MERGES
    while (store->count > LINMDP_CENTRES)
        coarsen(store);
#endif
}

int linmdp_init(linmdp_learner *m, uint32_t seed)
{
    if (m == NULL)
        return LINMDP_NULL;
    linmdp_core_init(&m->core, seed);
    for (size_t g = 0; g < LINMDP_STORES; g++) {
        m->store[g].count = 0;
#if LINMDP_MERGES
        m->store[g].radius = 0;
#endif
    }
    m->clock.episodes = m->clock.due = 0;
    return LINMDP_OK;
}

int linmdp_begin_episode(linmdp_learner *m)
{
    if (m == NULL)
        return LINMDP_NULL;
    int planned = linmdp_is_due(&m->clock);
#if LINMDP_AUTO
    planned |= linmdp_width_beaten(&m->core.width);
#endif
    linmdp_open(&m->core, planned);
    if (planned) {
        linmdp_set_clock(&m->clock);
        if (linmdp_plan(m) != LINMDP_OK || linmdp_renew_width(m) != LINMDP_OK) {
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
    if (!terminated && LINMDP_AHEAD > 1 && g < LINMDP_STORES) /* the value after the end is 0 */
        keep(&m->store[g], next_state, phi);
    return LINMDP_OK;
}
