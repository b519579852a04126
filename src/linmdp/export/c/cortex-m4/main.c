/* main.c: the self-test on a Cortex-M4. What it says goes out by semihosting, to a debugger or to QEMU. */
#include <stdint.h>

#include "selftest.h"

void semihosting_exit(int failed);

static int semihosting(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void semihosting_exit(int failed)
{
    const uint32_t block[2] = {UINT32_C(0x20026), failed ? 1 : 0}; /* stopped by the program, with this status */
    (void)semihosting(0x20, block);                                 /* SYS_EXIT_EXTENDED */
}

static void say(const char *words) { (void)semihosting(0x04, words); } /* SYS_WRITE0 */

static void say_number(const char *words, unsigned long number)
{
    char digits[24];
    char *at = digits + sizeof digits;
    *--at = '\0';
    *--at = '\n';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    say(words);
    say(at);
}

int main(void)
{
    static linmdp_learner learner;
    linmdp_report report;
    const int failed = linmdp_selftest(&learner, &report);
    say_number("bytes ", (unsigned long)sizeof learner);
    say_number("steps ", report.steps);
    say_number("other_actions ", report.other_actions);
    say_number("close_calls ", report.close_calls);
    say_number("refused ", report.refused);
    say_number("policy_steps ", report.policy_steps);
    say_number("policy_mistakes ", report.policy_mistakes);
    say_number("largest_error_times_1e12 ", (unsigned long)(report.largest_error * 1e12 < 4e9 ? report.largest_error * 1e12 : 4e9));
    say(failed ? "FAILED\n" : "passed\n");
    return failed;
}
