/* board.c: see board.h. */
#include "board.h"

#include <stdint.h>

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

void say(const char *words) { (void)semihosting(0x04, words); } /* SYS_WRITE0 */

void say_number(const char *words, unsigned long number)
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
