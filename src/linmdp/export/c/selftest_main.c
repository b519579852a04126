/* selftest_main.c: the self-test as a program for a computer. cortex-m4/main.c is the one for a microcontroller. */
#include <stdio.h>

#include "selftest.h"

int main(void)
{
    static linmdp_learner learner;
    linmdp_report report;
    const int failed = linmdp_selftest(&learner, &report);
    printf("bytes %lu\nsteps %lu\nother_actions %lu\nclose_calls %lu\nrefused %lu\npolicy_steps %lu\n"
           "policy_mistakes %lu\nfar %lu\nlargest_error %.3e\n%s\n",
           (unsigned long)sizeof learner, report.steps, report.other_actions, report.close_calls, report.refused,
           report.policy_steps, report.policy_mistakes, report.far, report.largest_error, failed ? "FAILED" : "passed");
    return failed;
}
