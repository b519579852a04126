/* main.c: the self-test on a Cortex-M4. What it says goes out by semihosting, to a debugger or to QEMU. */
#include "board.h"
#include "selftest.h"

int main(void)
{
    static linmdp_learner learner;
    linmdp_report report;
    const int failed = linmdp_selftest(&learner, &report);
    const double error = report.largest_error * 1e12;
    say_number("bytes ", (unsigned long)sizeof learner);
    say_number("steps ", report.steps);
    say_number("other_actions ", report.other_actions);
    say_number("close_calls ", report.close_calls);
    say_number("refused ", report.refused);
    say_number("policy_steps ", report.policy_steps);
    say_number("policy_mistakes ", report.policy_mistakes);
    say_number("largest_error_times_1e12 ", (unsigned long)(error < 4e9 ? error : 4e9));
    say(failed ? "FAILED\n" : "passed\n");
    return failed;
}
