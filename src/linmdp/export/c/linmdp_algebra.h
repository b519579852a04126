/* linmdp_algebra.h: symmetric matrices of LINMDP_D rows that are zero outside LINMDP_BLOCKS blocks of LINMDP_P rows.
 *
 * No phi(s, a) has entries in two blocks, so no sum of phi phi' has any elsewhere: one block is the general case, as many as
 * rows a diagonal matrix. A block is packed: its lower triangle row by row, row i from i(i+1)/2 on. A Cholesky factor keeps
 * 1 / L_ii on its diagonal, so that solving needs no division.
 */
#ifndef LINMDP_ALGEBRA_H
#define LINMDP_ALGEBRA_H

#include "linmdp_config.h"

#define LINMDP_TRIANGLE (LINMDP_P * (LINMDP_P + 1) / 2)
#define LINMDP_PACKED (LINMDP_BLOCKS * LINMDP_TRIANGLE)

/* matrix = diagonal * I */
void linmdp_set_diagonal(linmdp_wide matrix[LINMDP_PACKED], linmdp_wide diagonal);

/* matrix += a phi phi' */
void linmdp_add_outer(linmdp_wide matrix[LINMDP_PACKED], linmdp_wide a, const linmdp_real phi[LINMDP_D]);

/* Cholesky, in place. 0, or -1 if the matrix is not positive definite. */
int linmdp_factor(linmdp_wide matrix[LINMDP_PACKED]);

/* x = matrix^-1 x, from the factor of the matrix */
void linmdp_solve(const linmdp_wide factor[LINMDP_PACKED], linmdp_wide x[LINMDP_D]);

/* phi' matrix^-1 phi, from the factor of the matrix */
linmdp_wide linmdp_inverse_form(const linmdp_wide factor[LINMDP_PACKED], const linmdp_real phi[LINMDP_D]);

/* The same in the quick numbers, for acting. */
linmdp_quick linmdp_quick_inverse_form(const linmdp_quick factor[LINMDP_PACKED], const linmdp_real phi[LINMDP_D]);

/* phi' x */
linmdp_wide linmdp_dot(const linmdp_real phi[LINMDP_D], const linmdp_wide x[LINMDP_D]);

/* y += a phi */
void linmdp_add_scaled(linmdp_wide y[LINMDP_D], linmdp_wide a, const linmdp_real phi[LINMDP_D]);

#endif
