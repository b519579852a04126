/* linmdp_value.h: Q, in the one place where it stands. */
#ifndef LINMDP_VALUE_H
#define LINMDP_VALUE_H

#include "linmdp_algebra.h"
#include "linmdp_features.h"

/* The planned step that step h of an episode is: those before the last LINMDP_AHEAD are the first of these. */
#define LINMDP_STEP(h) ((h) > LINMDP_H - LINMDP_AHEAD ? (h) - (LINMDP_H - LINMDP_AHEAD) : 0u)

/* The largest value that Q can have at planned step h. */
linmdp_wide linmdp_cap(unsigned h);

/* Q_h(s, .) = min(phi'w + beta sqrt(phi' Lambda^-1 phi), cap_h), from w and the factor of Lambda, for planning.
 * 0, or -1 where it is not a number. */
int linmdp_optimistic(const linmdp_wide w[LINMDP_D], const linmdp_wide factor[LINMDP_PACKED], linmdp_wide beta,
                      unsigned h, const linmdp_seen *seen, linmdp_wide q[LINMDP_A]);

/* The same with the bonus in the quick numbers, for acting. */
int linmdp_quick_optimistic(const linmdp_wide w[LINMDP_D], const linmdp_quick factor[LINMDP_PACKED], linmdp_wide beta,
                            unsigned h, const linmdp_seen *seen, linmdp_wide q[LINMDP_A]);

/* The largest of q. */
linmdp_wide linmdp_largest(const linmdp_wide q[LINMDP_A]);

/* The first action that shares the largest q: it is at most `tie` below it. */
unsigned linmdp_first_best(const linmdp_wide q[LINMDP_A], linmdp_wide tie);

#endif
