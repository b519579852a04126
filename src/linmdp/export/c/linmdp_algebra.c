/* linmdp_algebra.c: see linmdp_algebra.h. */
#include "linmdp_algebra.h"

#include <math.h>
#include <stddef.h>

/* The first entry of phi that is not 0, or LINMDP_D. It tells the block, and L^-1 phi begins there too. */
static size_t first_entry(const linmdp_real phi[LINMDP_D])
{
    size_t first = 0;
    while (first < LINMDP_D && phi[first] == 0)
        first++;
    return first;
}

void linmdp_set_diagonal(linmdp_wide matrix[LINMDP_PACKED], linmdp_wide diagonal)
{
    size_t at = 0;
    for (size_t i = 0; i < LINMDP_PACKED; i++)
        matrix[i] = 0;
    for (size_t i = 0; i < LINMDP_D; i++) {
        at += i % LINMDP_P;
        matrix[at++] = diagonal;
    }
}

void linmdp_add_outer(linmdp_wide matrix[LINMDP_PACKED], linmdp_wide a, const linmdp_real phi[LINMDP_D])
{
    const size_t first = first_entry(phi), block = first / LINMDP_P;
    if (first == LINMDP_D)
        return;
    const linmdp_real *x = phi + block * LINMDP_P;
    linmdp_wide *row = matrix + block * LINMDP_TRIANGLE;
    for (size_t i = 0; i < LINMDP_P; row += ++i) {
        const linmdp_wide scaled = a * (linmdp_wide)x[i];
        for (size_t j = 0; j <= i; j++)
            row[j] += scaled * (linmdp_wide)x[j];
    }
}

/* One block. */
static int factor_block(linmdp_wide *block)
{
    linmdp_wide *row = block;
    for (size_t i = 0; i < LINMDP_P; row += ++i) {
        const linmdp_wide *other = block;
        for (size_t j = 0; j <= i; other += ++j) {
            linmdp_wide sum = row[j];
            for (size_t k = 0; k < j; k++)
                sum -= row[k] * other[k];
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

int linmdp_factor(linmdp_wide matrix[LINMDP_PACKED])
{
    for (size_t b = 0; b < LINMDP_BLOCKS; b++)
        if (factor_block(matrix + b * LINMDP_TRIANGLE) != 0)
            return -1;
    return 0;
}

/* One block. */
static void solve_block(const linmdp_wide *factor, linmdp_wide *x)
{
    const linmdp_wide *row = factor;
    for (size_t i = 0; i < LINMDP_P; row += ++i) {
        for (size_t j = 0; j < i; j++)
            x[i] -= row[j] * x[j];
        x[i] *= row[i];
    }
    for (size_t i = LINMDP_P; i-- > 0;) {
        row = factor + i * (i + 1) / 2;
        x[i] *= row[i];
        for (size_t j = 0; j < i; j++)
            x[j] -= row[j] * x[i];
    }
}

void linmdp_solve(const linmdp_wide factor[LINMDP_PACKED], linmdp_wide x[LINMDP_D])
{
    for (size_t b = 0; b < LINMDP_BLOCKS; b++)
        solve_block(factor + b * LINMDP_TRIANGLE, x + b * LINMDP_P);
}

linmdp_wide linmdp_inverse_form(const linmdp_wide factor[LINMDP_PACKED], const linmdp_real phi[LINMDP_D])
{
    const size_t start = first_entry(phi), block = start / LINMDP_P, first = start % LINMDP_P;
    linmdp_wide x[LINMDP_P], form = 0; /* x = L^-1 phi; the form is its squared length, which can not be negative */
    if (start == LINMDP_D)
        return 0;
    const linmdp_wide *row = factor + block * LINMDP_TRIANGLE + first * (first + 1) / 2;
    for (size_t i = first; i < LINMDP_P; row += ++i) {
        linmdp_wide sum = (linmdp_wide)phi[block * LINMDP_P + i];
        for (size_t j = first; j < i; j++)
            sum -= row[j] * x[j];
        x[i] = sum * row[i];
        form += x[i] * x[i];
    }
    return form;
}

linmdp_quick linmdp_quick_inverse_form(const linmdp_quick factor[LINMDP_PACKED], const linmdp_real phi[LINMDP_D])
{
    const size_t start = first_entry(phi), block = start / LINMDP_P, first = start % LINMDP_P;
    linmdp_quick x[LINMDP_P], form = 0;
    if (start == LINMDP_D)
        return 0;
    const linmdp_quick *row = factor + block * LINMDP_TRIANGLE + first * (first + 1) / 2;
    for (size_t i = first; i < LINMDP_P; row += ++i) {
        linmdp_quick sum = (linmdp_quick)phi[block * LINMDP_P + i];
        for (size_t j = first; j < i; j++)
            sum -= row[j] * x[j];
        x[i] = sum * row[i];
        form += x[i] * x[i];
    }
    return form;
}

linmdp_wide linmdp_dot(const linmdp_real phi[LINMDP_D], const linmdp_wide x[LINMDP_D])
{
    linmdp_wide sum = 0;
    for (size_t i = 0; i < LINMDP_D; i++)
        sum += (linmdp_wide)phi[i] * x[i];
    return sum;
}

void linmdp_add_scaled(linmdp_wide y[LINMDP_D], linmdp_wide a, const linmdp_real phi[LINMDP_D])
{
    for (size_t i = 0; i < LINMDP_D; i++)
        y[i] += a * (linmdp_wide)phi[i];
}
