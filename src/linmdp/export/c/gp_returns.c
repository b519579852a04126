/* linmdp_returns.c: what some steps can pay, as far as has been seen. */
#include "linmdp_gp.h"

static linmdp_wide larger(linmdp_wide x, linmdp_wide y) { return x > y ? x : y; }
static linmdp_wide smaller(linmdp_wide x, linmdp_wide y) { return x < y ? x : y; }

void linmdp_widen(linmdp_wide limits[2], linmdp_wide x)
{
    limits[0] = smaller(limits[0], x);
    limits[1] = larger(limits[1], x);
}

void linmdp_returns_init(linmdp_returns *r)
{
    for (unsigned g = 0; g <= LINMDP_L; g++) {
        r->most[g] = g > 0 ? -LINMDP_WIDE_MAX : 0;
        r->least[g] = -r->most[g];
    }
    r->reward[0] = r->episode[0] = LINMDP_WIDE_MAX;
    r->reward[1] = r->episode[1] = -LINMDP_WIDE_MAX;
    r->shortest = UINT32_MAX;
    r->longest = 0;
}

unsigned linmdp_horizon(const linmdp_returns *r) { return r->shortest == r->longest ? r->longest : LINMDP_H; }

linmdp_wide linmdp_returns_ended(linmdp_returns *r, const linmdp_wide *rewards, linmdp_wide *sums, unsigned n, int over)
{
    linmdp_wide last = 0, most = -LINMDP_WIDE_MAX, least = LINMDP_WIDE_MAX, earned = 0;
    for (unsigned t = 0; t <= n; t++)
        sums[t] = 0;
    for (unsigned g = 1; g <= LINMDP_L && n > 0; g++) {
        linmdp_wide window[2] = {r->least[g], r->most[g]};
        for (unsigned t = 0; g <= n && t <= n - g; t++) { /* the sum of g rewards from step t on */
            sums[t] = rewards[t] + LINMDP_DISCOUNT * sums[t + 1];
            linmdp_widen(window, sums[t]);
        }
        last = g <= n ? sums[n - g] : last;
        if (over) { /* so many steps and fewer, up to the end */
            most = larger(most, last);
            least = smaller(least, last);
            window[0] = smaller(window[0], least);
            window[1] = larger(window[1], most);
        }
        r->least[g] = window[0];
        r->most[g] = window[1];
    }
    for (unsigned t = n; t-- > 0;)
        earned = rewards[t] + LINMDP_DISCOUNT * earned;
    linmdp_widen(r->episode, earned);
    r->shortest = n < r->shortest ? n : r->shortest;
    r->longest = n > r->longest ? n : r->longest;
    return earned;
}

/* Beyond what was seen, the sum of two parts. Where every reward is negative the best that may happen is an end. */
void linmdp_returns_bounds(const linmdp_returns *r, linmdp_wide top[LINMDP_L + 1], linmdp_wide low[LINMDP_L + 1])
{
    unsigned far = 1;
    linmdp_wide later = LINMDP_DISCOUNT; /* discount^far */
    for (unsigned g = 0; g <= LINMDP_L; g++) {
        top[g] = r->most[g];
        low[g] = r->least[g];
    }
    top[1] = larger(top[1], r->reward[1]);
    low[1] = smaller(low[1], r->reward[0]);
    for (unsigned g = 2; g <= LINMDP_L; g++) {
        if (r->most[g] > -LINMDP_WIDE_MAX) {
            for (; far < g; far++)
                later *= LINMDP_DISCOUNT;
            continue;
        }
        top[g] = top[far] + later * top[g - far];
        low[g] = smaller(low[far], low[far] + later * low[g - far]);
    }
    for (unsigned g = 0; g <= LINMDP_L; g++) {
        if (r->reward[1] < 0 && g > 0)
            top[g] = larger(top[g], r->reward[1]);
        low[g] = smaller(low[g], top[g]);
    }
}

linmdp_wide linmdp_hope(const linmdp_returns *r)
{
    const linmdp_wide range = r->episode[1] - r->episode[0];
    const linmdp_wide unit = r->reward[1] > -r->reward[0] ? r->reward[1] : -r->reward[0];
    const int played = r->shortest < UINT32_MAX; /* an episode has ended */
    if (played && range > LINMDP_SAME * unit)
        return 0;
    return unit > 0 ? unit : 1;
}
