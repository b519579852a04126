/* linmdp_experience.c: transitions as they were seen. Equal ones are counted and, where there are too many, near ones are
 * merged: those whose two ends are both within a radius of those of a kept one add to its times, the heaviest first, and
 * it stands for the states that they began with. The kept one is not moved: a real transition obeys the dynamics, a mean
 * of several does not.
 */
#include <math.h>
#include <string.h>

#include "linmdp_gp.h"

int linmdp_same_point(const linmdp_point *x, const linmdp_point *y) { return memcmp(x, y, sizeof *x) == 0; }

linmdp_wide linmdp_come_again(const linmdp_experience *e)
{
    return e->seen > 0 ? (linmdp_wide)e->again / (linmdp_wide)e->seen : 0;
}

static void sift(void *of, unsigned root, unsigned n, int (*before)(const void *, unsigned, unsigned),
                 void (*swap)(void *, unsigned, unsigned))
{
    for (unsigned child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && before(of, child, child + 1))
            child++;
        if (!before(of, root, child))
            return;
        swap(of, root, child);
    }
}

void linmdp_sort(void *of, unsigned n, int (*before)(const void *of, unsigned i, unsigned j),
                 void (*swap)(void *of, unsigned i, unsigned j))
{
    for (unsigned i = n / 2; i-- > 0;)
        sift(of, i, n, before, swap);
    for (unsigned i = n; i-- > 1;) {
        swap(of, 0, i);
        sift(of, 0, i, before, swap);
    }
}

/* The point that is equal to x, or LINMDP_NONE. */
static uint16_t find(const linmdp_experience *e, const linmdp_point *x)
{
    for (unsigned i = 0; i < e->held; i++)
        if (linmdp_same_point(&e->point[i], x))
            return (uint16_t)i;
    return LINMDP_NONE;
}

static uint16_t keep(linmdp_experience *e, const linmdp_point *x)
{
    uint16_t at = find(e, x);
    if (at == LINMDP_NONE) {
        at = e->held++;
        e->point[at] = *x;
    }
    return at;
}

/* Coordinate j of end i, where those of all rows are counted: each row has two. */
static linmdp_number end_of(const linmdp_experience *e, unsigned i, unsigned j)
{
    const linmdp_row *row = &e->row[i / 2];
    return e->point[i % 2 ? row->to : row->from].x[j];
}

/* Of all ends' coordinates j times `sign`, in order: those at `rank` and after it. */
static void ranked(const linmdp_experience *e, unsigned j, linmdp_number sign, unsigned rank, linmdp_number found[2])
{
    const unsigned n = 2u * e->count;
    unsigned below = 0; /* that were passed so far, a number at a time */
    linmdp_number last = 0;
    for (unsigned known = 0; known < 2;) {
        linmdp_number least = 0;
        unsigned equal = 0;
        for (unsigned i = 0; i < n; i++) {
            const linmdp_number x = sign * end_of(e, i, j);
            if (below > 0 && x <= last)
                continue;
            if (equal == 0 || x < least) {
                least = x;
                equal = 0;
            }
            equal += x == least;
        }
        below += equal;
        last = least;
        while (known < 2 && (below > rank + known || below >= n))
            found[known++] = sign * least;
    }
}

/* The number at a part of the way from the least to the most of all ends' coordinates j, by its rank. */
static linmdp_wide quantile(const linmdp_experience *e, unsigned j, linmdp_wide part)
{
    const linmdp_wide last = 2 * (linmdp_wide)e->count - 1, at = part * last;
    const unsigned rank = (unsigned)at;
    const linmdp_wide t = at - (linmdp_wide)rank;
    linmdp_number found[2];
    if (part < 0.5) {
        ranked(e, j, 1, rank, found);
    } else {
        ranked(e, j, -1, (unsigned)last - rank - 1, found);
        const linmdp_number larger = found[0];
        found[0] = found[1];
        found[1] = larger;
    }
    const linmdp_wide low = (linmdp_wide)found[0], high = (linmdp_wide)found[1], apart = high - low;
    return t < 0.5 ? low + apart * t : high - apart * (1 - t);
}

void linmdp_rescale(linmdp_experience *e)
{
    const unsigned n = 2u * e->count;
    for (unsigned j = 0; j < LINMDP_K; j++) {
        linmdp_wide sum = 0, low = (linmdp_wide)end_of(e, 0, j), high = low;
        for (unsigned i = 0; i < n; i++) {
            const linmdp_wide x = (linmdp_wide)end_of(e, i, j);
            sum += x;
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        const linmdp_wide inner = quantile(e, j, 0.99) - quantile(e, j, 0.01);
        const linmdp_wide spread = inner > 0 ? inner : high - low;
        e->centre[j] = sum / (linmdp_wide)n;
        e->unit[j] = spread > 0 ? 1 / spread : 0;
    }
}

/* Sums of 2 K terms, in the order in which numpy adds them. */
#define TOTAL(name, type)                                                                                              \
    static type name(const type *term)                                                                                 \
    {                                                                                                                  \
        enum { ALL = 2 * LINMDP_K, EIGHTS = ALL / 8 * 8 };                                                             \
        type sum = 0, part[8];                                                                                         \
        if (ALL >= 8) {                                                                                                \
            for (unsigned i = 0; i < 8; i++)                                                                           \
                part[i] = term[i];                                                                                     \
            for (int i = 8; i < EIGHTS; i++)                                                                           \
                part[i % 8] += term[i];                                                                                \
            sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));           \
        }                                                                                                              \
        for (int i = EIGHTS; i < ALL; i++)                                                                             \
            sum += term[i];                                                                                            \
        return sum;                                                                                                    \
    }
TOTAL(total, linmdp_number)
TOTAL(wide_total, linmdp_wide)

/* How far two transitions are apart, squared, in single precision. */
static linmdp_number apart(const linmdp_experience *e, const linmdp_point *x, const linmdp_point *y,
                           const linmdp_row *row)
{
    const linmdp_point *from = &e->point[row->from], *to = &e->point[row->to];
    linmdp_number term[2 * LINMDP_K];
    for (unsigned j = 0; j < LINMDP_K; j++) {
        const linmdp_number unit = (linmdp_number)e->unit[j];
        const linmdp_number first = (from->x[j] - x->x[j]) * unit, second = (to->x[j] - y->x[j]) * unit;
        term[j] = first * first;
        term[LINMDP_K + j] = second * second;
    }
    return total(term);
}

/* The nearest of the first n rows that a transition may be merged with, or LINMDP_NONE. */
static uint16_t nearby(const linmdp_experience *e, unsigned n, const linmdp_point *x, const linmdp_point *y,
                     unsigned action, int over)
{
    uint16_t nearest = LINMDP_NONE;
    linmdp_number least = 0;
    for (unsigned i = 0; i < n; i++) {
        const linmdp_row *row = &e->row[i];
        if (row->action != action || row->over != over)
            continue;
        const linmdp_number square = apart(e, x, y, row);
        if (nearest == LINMDP_NONE || square < least) {
            least = square;
            nearest = (uint16_t)i;
        }
    }
    return nearest != LINMDP_NONE && (linmdp_wide)least <= e->radius * e->radius ? nearest : LINMDP_NONE;
}

static void weigh(linmdp_row *row, linmdp_real times, linmdp_real reward, linmdp_real squared)
{
    row->times += times;
    const linmdp_real share = times / row->times;
    row->reward += share * (reward - row->reward);
    row->squared += share * (squared - row->squared);
}

static int heavier(const void *of, unsigned i, unsigned j)
{
    const linmdp_row *x = (const linmdp_row *)of + i, *y = (const linmdp_row *)of + j;
    return x->times > y->times || (!(x->times < y->times) && x->place < y->place);
}

static void swap_rows(void *of, unsigned i, unsigned j)
{
    linmdp_row *row = of, moved = row[i];
    row[i] = row[j];
    row[j] = moved;
}

/* Points that no row has any more are dropped; those that rows begin with are counted. */
static void drop_points(linmdp_experience *e)
{
    unsigned held = 0;
    for (unsigned i = 0; i < e->held; i++)
        e->rank[i] = 0;
    for (unsigned i = 0; i < e->count; i++) {
        e->rank[e->row[i].from] |= 1;
        e->rank[e->row[i].to] |= 2;
    }
    e->begun = 0;
    for (unsigned i = 0; i < e->held; i++) {
        e->begun = (uint16_t)(e->begun + (e->rank[i] & 1));
        if (e->rank[i] == 0)
            continue;
        e->point[held] = e->point[i];
        e->rank[i] = (uint16_t)held++;
    }
    for (unsigned i = 0; i < e->count; i++) {
        e->row[i].from = e->rank[e->row[i].from];
        e->row[i].to = e->rank[e->row[i].to];
    }
    e->held = (uint16_t)held;
}

/* Half of how far the nearest neighbours are, for rows that lie evenly among all. */
static linmdp_wide first_radius(const linmdp_experience *e)
{
    linmdp_wide nearest[LINMDP_PROBES], term[2 * LINMDP_K];
    const linmdp_wide step = (linmdp_wide)(e->count - 1) / (LINMDP_PROBES - 1);
    for (unsigned p = 0; p < LINMDP_PROBES; p++) {
        const unsigned at = p + 1 < LINMDP_PROBES ? (unsigned)((linmdp_wide)p * step) : e->count - 1u;
        const linmdp_row *probe = &e->row[at];
        linmdp_wide least = LINMDP_WIDE_MAX;
        for (unsigned i = 0; i < e->count; i++) {
            if (i == at)
                continue;
            for (unsigned j = 0; j < LINMDP_K; j++) {
                const linmdp_row *row = &e->row[i];
                const linmdp_wide unit = e->unit[j];
                const linmdp_wide first = (linmdp_wide)e->point[probe->from].x[j] * unit -
                                          (linmdp_wide)e->point[row->from].x[j] * unit;
                const linmdp_wide second =
                    (linmdp_wide)e->point[probe->to].x[j] * unit - (linmdp_wide)e->point[row->to].x[j] * unit;
                term[j] = first * first;
                term[LINMDP_K + j] = second * second;
            }
            const linmdp_wide square = wide_total(term);
            least = square < least ? square : least;
        }
        unsigned place = p;
        for (; place > 0 && nearest[place - 1] > least; place--)
            nearest[place] = nearest[place - 1];
        nearest[place] = least;
    }
    const linmdp_wide middle = (nearest[(LINMDP_PROBES - 1) / 2] + nearest[LINMDP_PROBES / 2]) / 2;
    return 0.5 * LINMDP_WIDE_SQRT(middle) + 1e-9;
}

/* Whether more is held than this share of what may be. */
static int beyond(const linmdp_experience *e, linmdp_wide share)
{
    return (linmdp_wide)e->begun > share * LINMDP_STATES || (linmdp_wide)e->count > share * 4 * LINMDP_STATES ||
           (linmdp_wide)e->held > share * 2 * LINMDP_STATES;
}

/* The heaviest first, each near one that is kept adds to it. */
static void merge_all(linmdp_experience *e)
{
    const unsigned n = e->count;
    for (unsigned i = 0; i < n; i++)
        e->row[i].place = (uint16_t)i;
    linmdp_sort(e->row, n, heavier, swap_rows);
    e->count = 0;
    for (unsigned i = 0; i < n; i++) {
        const linmdp_row row = e->row[i];
        const uint16_t into = nearby(e, e->count, &e->point[row.from], &e->point[row.to], row.action, row.over);
        if (into == LINMDP_NONE)
            e->row[e->count++] = row;
        else {
            e->row[into].others += row.others + (row.from != e->row[into].from);
            weigh(&e->row[into], row.times, row.reward, row.squared);
        }
    }
    drop_points(e);
}

static void coarsen(linmdp_experience *e)
{
    linmdp_rescale(e);
    if (!(e->radius > 0))
        e->radius = first_radius(e);
    while (beyond(e, LINMDP_LEFT)) {
        e->radius *= LINMDP_WIDER;
        merge_all(e);
    }
}

void linmdp_add(linmdp_experience *e, const linmdp_point *x, unsigned action, linmdp_real reward, const linmdp_point *y,
                int over)
{
    uint16_t at = LINMDP_NONE, from = find(e, x), to = find(e, y);
    int begun = 0;
    for (unsigned i = 0; i < e->count; i++) {
        const linmdp_row *row = &e->row[i];
        begun |= row->from == from;
        if (from != LINMDP_NONE && row->from == from && row->to == to && row->action == action && row->over == over)
            at = at == LINMDP_NONE ? (uint16_t)i : at;
    }
    begun &= from != LINMDP_NONE;
    if (at == LINMDP_NONE && e->radius > 0) {
        at = nearby(e, e->count, x, y, action, over);
        if (at != LINMDP_NONE)
            e->row[at].others += e->row[at].from != from;
    }
    if (e->seen < UINT32_MAX) {
        e->seen++;
        e->again += (uint32_t)begun;
    }
    if (at == LINMDP_NONE) {
        from = keep(e, x);
        to = keep(e, y);
        e->begun = (uint16_t)(e->begun + !begun);
        at = e->count++;
        const linmdp_row row = {0, 0, 0, 0, from, to, 0, (linmdp_index_a)action, (uint8_t)over};
        e->row[at] = row;
    }
    weigh(&e->row[at], 1, reward, reward * reward);
    if (beyond(e, 1))
        coarsen(e);
}

int linmdp_doubled(const linmdp_experience *e, const linmdp_point *x, unsigned action)
{
    const uint16_t from = find(e, x);
    linmdp_real here = 0, tried = 0;
    for (unsigned i = 0; from != LINMDP_NONE && i < e->count; i++)
        if (e->row[i].from == from) {
            here += e->row[i].times;
            tried += e->row[i].action == action ? e->row[i].times : 0;
        }
    const uint32_t visits = (uint32_t)tried;
    return visits > 0 && (visits & (visits - 1)) == 0 && here > 1;
}
