/* linmdp_algebra.c: every phi has one entry, so every matrix here is diagonal. See linmdp_algebra.h. */
#include "linmdp_algebra.h"

#include <math.h>
#include <stddef.h>

void linmdp_set_diagonal(linmdp_wide matrix[LINMDP_PACKED], linmdp_wide diagonal)
{
    for (size_t i = 0; i < LINMDP_D; i++)
        matrix[i] = diagonal;
}

void linmdp_add_outer(linmdp_wide matrix[LINMDP_PACKED], const linmdp_real phi[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        matrix[i] += (linmdp_wide)phi[i] * (linmdp_wide)phi[i];
    LINMDP_COUNT_WIDE(LINMDP_D);
}

int linmdp_factor(linmdp_wide matrix[LINMDP_PACKED])
{
    for (size_t i = 0; i < LINMDP_D; i++) {
        if (!(matrix[i] > 0 && matrix[i] <= LINMDP_WIDE_MAX))
            return -1;
        matrix[i] = 1 / LINMDP_WIDE_SQRT(matrix[i]);
    }
    LINMDP_COUNT_WIDE(LINMDP_D);
    return 0;
}

void linmdp_solve(const linmdp_wide factor[LINMDP_PACKED], linmdp_wide x[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        x[i] *= factor[i] * factor[i];
    LINMDP_COUNT_WIDE(2 * LINMDP_D);
}

void linmdp_add_product(linmdp_wide y[LINMDP_D], const linmdp_wide matrix[LINMDP_PACKED],
                        const linmdp_wide x[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        y[i] += matrix[i] * x[i];
    LINMDP_COUNT_WIDE(LINMDP_D);
}

linmdp_wide linmdp_inverse_form(const linmdp_wide factor[LINMDP_PACKED], const linmdp_real phi[LINMDP_D])
{
    linmdp_wide form = 0;
    for (size_t i = 0; i < LINMDP_D; i++) {
        const linmdp_wide x = (linmdp_wide)phi[i] * factor[i];
        form += x * x;
    }
    LINMDP_COUNT_WIDE(2 * LINMDP_D);
    return form;
}

linmdp_quick linmdp_quick_inverse_form(const linmdp_quick factor[LINMDP_PACKED], const linmdp_real phi[LINMDP_D])
{
    return linmdp_inverse_form(factor, phi); /* a diagonal is short enough to be kept as it is */
}

linmdp_wide linmdp_dot(const linmdp_real phi[LINMDP_D], const linmdp_wide x[LINMDP_D])
{
    linmdp_wide sum = 0;
    for (size_t i = 0; i < LINMDP_D; i++)
        sum += (linmdp_wide)phi[i] * x[i];
    LINMDP_COUNT_WIDE(LINMDP_D);
    return sum;
}

void linmdp_add_scaled(linmdp_wide y[LINMDP_D], linmdp_wide a, const linmdp_real phi[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        y[i] += a * (linmdp_wide)phi[i];
    LINMDP_COUNT_WIDE(LINMDP_D);
}
