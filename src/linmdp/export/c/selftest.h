/* selftest.h: does this build do what the Python agent does? Run it once on your target, then leave it out. */
#ifndef LINMDP_SELFTEST_H
#define LINMDP_SELFTEST_H

#include "linmdp.h"

typedef struct {
    unsigned long steps;            /* that were played */
    unsigned long other_actions;    /* where another action was chosen, and it is worse by more than LINMDP_CLOSE */
    unsigned long close_calls;      /* where another action was chosen that is as good, up to LINMDP_CLOSE */
    unsigned long refused;          /* calls that returned a status below 0, or did not where they should */
    unsigned long policy_steps;     /* asked of the frozen policy, */
    unsigned long policy_mistakes;  /* and answered with another action */
    unsigned long far;              /* steps where a Q is off by more than LINMDP_CLOSE */
    double largest_error;           /* of any Q */
} linmdp_report;

/* Play what Python recorded. `learner` is only borrowed as space to work in. 0 if all is well. */
int linmdp_selftest(linmdp_learner *learner, linmdp_report *report);

#endif
