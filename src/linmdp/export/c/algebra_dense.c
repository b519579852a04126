/* linmdp_algebra.c: see linmdp_algebra.h. */
#include "linmdp_algebra.h"

#include <math.h>
#include <stddef.h>

void linmdp_set_diagonal(linmdp_wide matrix[LINMDP_PACKED], linmdp_wide diagonal)
{
    size_t at = 0;
    for (size_t i = 0; i < LINMDP_D; i++) {
        for (size_t j = 0; j < i; j++)
            matrix[at++] = 0;
        matrix[at++] = diagonal;
    }
}

void linmdp_add_outer(linmdp_wide matrix[LINMDP_PACKED], const linmdp_real phi[LINMDP_D])
{
    size_t at = 0;
    for (size_t i = 0; i < LINMDP_D; at += ++i) {
        const linmdp_wide x = (linmdp_wide)phi[i];
        if (x == 0) /* most of a one-hot vector */
            continue;
        for (size_t j = 0; j <= i; j++)
            matrix[at + j] += x * (linmdp_wide)phi[j];
        LINMDP_COUNT_WIDE(i + 1);
    }
}

int linmdp_factor(linmdp_wide matrix[LINMDP_PACKED])
{
    linmdp_wide *row = matrix;
    for (size_t i = 0; i < LINMDP_D; row += ++i) {
        const linmdp_wide *other = matrix;
        for (size_t j = 0; j <= i; other += ++j) {
            linmdp_wide sum = row[j];
            for (size_t k = 0; k < j; k++)
                sum -= row[k] * other[k];
            LINMDP_COUNT_WIDE(j + 1);
            if (j < i)
                row[j] = sum * other[j];
            else if (sum > 0 && sum <= LINMDP_WIDE_MAX)
                row[i] = 1 / LINMDP_WIDE_SQRT(sum);
            else
                return -1;
        }
    }
    return 0;
}

void linmdp_solve(const linmdp_wide factor[LINMDP_PACKED], linmdp_wide x[LINMDP_D])
{
    const linmdp_wide *row = factor;
    for (size_t i = 0; i < LINMDP_D; row += ++i) {
        for (size_t j = 0; j < i; j++)
            x[i] -= row[j] * x[j];
        x[i] *= row[i];
        LINMDP_COUNT_WIDE(i + 1);
    }
    for (size_t i = LINMDP_D; i-- > 0;) {
        row = factor + i * (i + 1) / 2;
        x[i] *= row[i];
        for (size_t j = 0; j < i; j++)
            x[j] -= row[j] * x[i];
        LINMDP_COUNT_WIDE(i + 1);
    }
}

void linmdp_add_product(linmdp_wide y[LINMDP_D], const linmdp_wide matrix[LINMDP_PACKED],
                        const linmdp_wide x[LINMDP_D])
{
    const linmdp_wide *row = matrix;
    for (size_t i = 0; i < LINMDP_D; row += ++i) {
        linmdp_wide sum = row[i] * x[i];
        for (size_t j = 0; j < i; j++) {
            sum += row[j] * x[j];
            y[j] += row[j] * x[i];
        }
        y[i] += sum;
        LINMDP_COUNT_WIDE(2 * i + 1);
    }
}

/* Where phi begins: L^-1 phi begins there too. */
static size_t first_entry(const linmdp_real phi[LINMDP_D])
{
    size_t first = 0;
    while (first < LINMDP_D && phi[first] == 0)
        first++;
    return first;
}

linmdp_wide linmdp_inverse_form(const linmdp_wide factor[LINMDP_PACKED], const linmdp_real phi[LINMDP_D])
{
    linmdp_wide x[LINMDP_D]; /* L^-1 phi: the form is its squared length, which can not be negative */
    linmdp_wide form = 0;
    const size_t first = first_entry(phi);
    const linmdp_wide *row = factor + first * (first + 1) / 2;
    for (size_t i = first; i < LINMDP_D; row += ++i) {
        linmdp_wide sum = (linmdp_wide)phi[i];
        for (size_t j = first; j < i; j++)
            sum -= row[j] * x[j];
        x[i] = sum * row[i];
        form += x[i] * x[i];
        LINMDP_COUNT_WIDE(i - first + 2);
    }
    return form;
}

linmdp_quick linmdp_quick_inverse_form(const linmdp_quick factor[LINMDP_PACKED], const linmdp_real phi[LINMDP_D])
{
    linmdp_quick x[LINMDP_D], form = 0;
    const size_t first = first_entry(phi);
    const linmdp_quick *row = factor + first * (first + 1) / 2;
    for (size_t i = first; i < LINMDP_D; row += ++i) {
        linmdp_quick sum = (linmdp_quick)phi[i];
        for (size_t j = first; j < i; j++)
            sum -= row[j] * x[j];
        x[i] = sum * row[i];
        form += x[i] * x[i];
        LINMDP_COUNT_REAL(i - first + 2);
    }
    return form;
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
