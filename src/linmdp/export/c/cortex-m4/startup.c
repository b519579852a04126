/* startup.c: from reset to main on a Cortex-M4 with FPU. Nothing of libc; main.c says what comes out. */
#include <stdint.h>

extern uint32_t stack_top, data_load, data_start, data_end, bss_start, bss_end;

int main(void);
void semihosting_exit(int failed);
void reset_handler(void);

void reset_handler(void)
{
    volatile uint32_t *const coprocessor_access = (volatile uint32_t *)UINT32_C(0xE000ED88);
    *coprocessor_access |= UINT32_C(0xF) << 20; /* the FPU is off after reset */
    __asm__ volatile("dsb\n isb");
    for (uint32_t *from = &data_load, *to = &data_start; to < &data_end;)
        *to++ = *from++;
    for (uint32_t *to = &bss_start; to < &bss_end;)
        *to++ = 0;
    semihosting_exit(main());
    for (;;) {
    }
}

static void stop(void)
{
    semihosting_exit(1);
    for (;;) {
    }
}

typedef union {
    const uint32_t *stack;
    void (*handler)(void);
} vector;

__attribute__((section(".vectors"), used)) static const vector vectors[16] = {
    {.stack = &stack_top},   {.handler = reset_handler}, {.handler = stop}, {.handler = stop},
    {.handler = stop},       {.handler = stop},          {.handler = stop}, {.handler = 0},
    {.handler = 0},          {.handler = 0},             {.handler = 0},    {.handler = stop},
    {.handler = stop},       {.handler = 0},             {.handler = stop}, {.handler = stop},
};
