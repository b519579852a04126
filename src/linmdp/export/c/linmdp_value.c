/* linmdp_value.c: see linmdp_value.h. */
#include "linmdp_value.h"

#include <math.h>

linmdp_real linmdp_cap(unsigned h)
{
#if LINMDP_CAP_REMAINING
    return LINMDP_CAP_STEP * (linmdp_real)(LINMDP_H - h);
#else
    (void)h;
    return LINMDP_CAP_STEP * (linmdp_real)LINMDP_H;
#endif
}

int linmdp_optimistic(const linmdp_weights *weights, unsigned h, const linmdp_seen *seen, linmdp_wide q[LINMDP_A])
{
    const linmdp_wide cap = (linmdp_wide)linmdp_cap(h);
    linmdp_real phi[LINMDP_D];
    for (unsigned a = 0; a < LINMDP_A; a++) {
        linmdp_phi(seen, a, phi);
        const linmdp_real bonus = LINMDP_BETA * LINMDP_SQRT(linmdp_inverse_form(weights->factor, phi));
        const linmdp_wide value = linmdp_dot(phi, weights->w) + (linmdp_wide)bonus;
        q[a] = value > cap ? cap : value;
        if (!(q[a] <= cap && q[a] >= -LINMDP_WIDE_MAX))
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

unsigned linmdp_first_best(const linmdp_wide q[LINMDP_A])
{
    const linmdp_wide least = linmdp_largest(q) - LINMDP_TIE;
    unsigned a = 0;
    while (q[a] < least)
        a++;
    return a;
}
