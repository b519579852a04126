/* linmdp_gp.h: the parts of lsvi-gp. */
#ifndef LINMDP_GP_H
#define LINMDP_GP_H

#include "linmdp.h"

/* Experience: see linmdp_experience.c. */
void linmdp_add(linmdp_experience *e, const linmdp_point *x, unsigned action, linmdp_real reward, const linmdp_point *y,
                int over);
/* Whether visits of an action in x, a state that has come again, have just reached a power of two. */
int linmdp_doubled(const linmdp_experience *e, const linmdp_point *x, unsigned action);
void linmdp_rescale(linmdp_experience *e);
linmdp_wide linmdp_come_again(const linmdp_experience *e);
int linmdp_same_point(const linmdp_point *x, const linmdp_point *y);

/* Put n things in order, where `before` says of any two which comes first. */
void linmdp_sort(void *of, unsigned n, int (*before)(const void *of, unsigned i, unsigned j),
                 void (*swap)(void *of, unsigned i, unsigned j));

/* Returns: see linmdp_returns.c. */
void linmdp_returns_init(linmdp_returns *r);
linmdp_wide linmdp_returns_ended(linmdp_returns *r, const linmdp_wide *rewards, linmdp_wide *sums, unsigned n,
                                 int over);
void linmdp_returns_bounds(const linmdp_returns *r, linmdp_wide top[LINMDP_L + 1], linmdp_wide low[LINMDP_L + 1]);

/* How much more than ever may be, as long as all returns are equal: nothing is known of what pays. */
linmdp_wide linmdp_hope(const linmdp_returns *r);
void linmdp_widen(linmdp_wide limits[2], linmdp_wide x);

/* k of a squared distance, in units of the length. */
linmdp_wide linmdp_kernel(linmdp_wide square);

/* One entry of a symmetric matrix. */
static inline linmdp_wide *linmdp_entry(linmdp_wide matrix[LINMDP_TRIANGLE], unsigned i, unsigned j)
{
    return &matrix[i >= j ? i * (i + 1) / 2 + j : j * (j + 1) / 2 + i];
}

/* y = matrix x, of n rows */
void linmdp_product(const linmdp_wide *matrix, unsigned n, const linmdp_wide *x, linmdp_wide *y);

linmdp_wide linmdp_dot(const linmdp_wide *x, const linmdp_wide *y, unsigned n);

/* Sweep pivot i of a matrix of n rows. After those of all pivots it is minus its inverse. */
void linmdp_sweep(linmdp_wide *matrix, unsigned n, unsigned i);

/* w and w_0 of sums z: see Weights in Python. */
void linmdp_weights(const linmdp_fit *fit, linmdp_wide own, unsigned n, linmdp_wide z[LINMDP_A][LINMDP_P],
                    linmdp_wide w[LINMDP_A][LINMDP_P], linmdp_wide w_0[LINMDP_P]);

/* Variance of the smooth part of an action, where the features are phi. */
linmdp_wide linmdp_variance(const linmdp_fit *fit, linmdp_wide own, unsigned n, unsigned action, const linmdp_wide *phi);

/* Q of a point with g steps left, by a plan. */
void linmdp_plan_q(const linmdp_plan *plan, const linmdp_point *x, unsigned g, linmdp_wide q[LINMDP_A]);

/* Shares nearer to those that make the targets most likely: one unit of work, and its cost. 0 where all is done. */
uint32_t linmdp_evidence_unit(linmdp_learner *m);
void linmdp_evidence_begin(linmdp_learner *m);

/* The regression on cells with the shares of the plan: a unit of work, and its cost. 0 where all is done. */
void linmdp_regression_begin(linmdp_learner *m);
uint32_t linmdp_regression_unit(linmdp_learner *m);

/* Planning: begin, and do a unit of work; its cost in multiply-adds, 0 where the plan is complete. */
void linmdp_job_begin(linmdp_learner *m, int wide);
uint32_t linmdp_job_unit(linmdp_learner *m);

/* Steps of an episode: where all were equally long so far, that many, else LINMDP_H. */
unsigned linmdp_horizon(const linmdp_returns *r);

#endif
