/* linmdp_value.c: see linmdp_value.h. */
#include "linmdp_value.h"

#include <math.h>

linmdp_wide linmdp_cap(unsigned h)
{
#if LINMDP_CAP_REMAINING
    return LINMDP_CAP_STEP * (linmdp_wide)(LINMDP_AHEAD - h);
#else
    (void)h;
    return LINMDP_CAP;
#endif
}

/* min(mean + bonus, cap), and whether it is a number */
static int bounded(linmdp_wide mean, linmdp_wide bonus, linmdp_wide cap, linmdp_wide *q)
{
    const linmdp_wide value = mean + bonus;
    *q = value > cap ? cap : value;
    return *q <= cap && *q >= -LINMDP_WIDE_MAX;
}

int linmdp_optimistic(const linmdp_wide w[LINMDP_D], const linmdp_wide factor[LINMDP_PACKED], linmdp_wide beta,
                      unsigned h, const linmdp_seen *seen, linmdp_wide q[LINMDP_A])
{
    const linmdp_wide cap = linmdp_cap(h);
    linmdp_real phi[LINMDP_D];
    for (unsigned a = 0; a < LINMDP_A; a++) {
        linmdp_phi(seen, a, phi);
        const linmdp_wide bonus = beta > 0 ? beta * LINMDP_WIDE_SQRT(linmdp_inverse_form(factor, phi)) : 0;
        if (!bounded(linmdp_dot(phi, w), bonus, cap, &q[a]))
            return -1;
    }
    return 0;
}

int linmdp_quick_optimistic(const linmdp_wide w[LINMDP_D], const linmdp_quick factor[LINMDP_PACKED], linmdp_wide beta,
                            unsigned h, const linmdp_seen *seen, linmdp_wide q[LINMDP_A])
{
    const linmdp_wide cap = linmdp_cap(h);
    linmdp_real phi[LINMDP_D];
    for (unsigned a = 0; a < LINMDP_A; a++) {
        linmdp_phi(seen, a, phi);
        const linmdp_quick bonus = (linmdp_quick)beta * LINMDP_QUICK_SQRT(linmdp_quick_inverse_form(factor, phi));
        if (!bounded(linmdp_dot(phi, w), (linmdp_wide)bonus, cap, &q[a]))
            return -1;
    }
    return 0;
}

linmdp_wide linmdp_largest(const linmdp_wide q[LINMDP_A])
{
    linmdp_wide largest = q[0];
    for (unsigned a = 1; a < LINMDP_A; a++)
        if (q[a] > largest)
            largest = q[a];
    return largest;
}

unsigned linmdp_first_best(const linmdp_wide q[LINMDP_A], linmdp_wide tie)
{
    const linmdp_wide least = linmdp_largest(q) - tie;
    unsigned a = 0;
    while (q[a] < least)
        a++;
    return a;
}
