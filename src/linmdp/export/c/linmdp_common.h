/* linmdp_common.h: what the learners share. */
#ifndef LINMDP_COMMON_H
#define LINMDP_COMMON_H

#include "linmdp.h"
#include "linmdp_value.h"

/* Lambda += phi phi', u += phi r */
void linmdp_add_sample(linmdp_step *step, const linmdp_real phi[LINMDP_D], linmdp_real reward);

/* w = Lambda^-1 (u + z). `factor` becomes that of Lambda, and the step keeps it in quick numbers. LINMDP_OK or
 * LINMDP_NOT_A_NUMBER. */
int linmdp_regress(linmdp_step *step, const linmdp_wide z[LINMDP_D], linmdp_wide factor[LINMDP_PACKED]);

/* Lambda = lam I, u = 0 */
void linmdp_clear_sums(linmdp_step *step);

/* w = 0, with the factor of lam I */
void linmdp_clear_weights(linmdp_weights *weights);

/* What is wrong with an observation, before anything is changed. */
int linmdp_check(const linmdp_learner *learner, unsigned h, linmdp_state state, int action, linmdp_real reward,
                 linmdp_state next_state);

#endif
