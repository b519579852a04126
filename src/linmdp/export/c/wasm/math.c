/* math.c: cos, exp and log by their series, on intervals so short that the terms left out are below rounding. */
#include "math.h"

#include <stdint.h>

#define TWO_OVER_PI 0.63661977236758134
#define ONE_OVER_LOG_2 1.44269504088896341
/* pi / 2 and log 2, each as a sum whose first part, times a whole number of 20 bits, has no rounding */
#define HALF_PI 1.57079632673412561
#define HALF_PI_REST 6.07710050650619225e-11
#define LOG_2 0.693147180369123816
#define LOG_2_REST 1.90821492927058770e-10

typedef union {
    double number;
    uint64_t bits; /* 12 of sign and exponent, 52 of fraction */
} parts;

/* 1 - s / (n (n + 1)) (1 - s / ((n + 2) (n + 3)) (...)), n from `first` on: cos r if 1, sin r / r if 2, with s = r^2 */
static inline double alternating(double s, int first, int terms)
{
    double sum = 1;
#pragma clang loop unroll(full)
    for (int n = first + 2 * (terms - 1); n >= first; n -= 2)
        sum = 1 - s * sum * (1. / (n * (n + 1)));
    return sum;
}

static inline double cosine(double x, int terms)
{
    const double quarters = floor(x * TWO_OVER_PI + 0.5);
    const double r = (x - quarters * HALF_PI) - quarters * HALF_PI_REST;
    const unsigned turned = (unsigned)(quarters - 4 * floor(quarters / 4));
    const double value = turned % 2 ? r * alternating(r * r, 2, terms) : alternating(r * r, 1, terms);
    return turned == 1 || turned == 2 ? -value : value;
}

static inline double exponential(double x, int terms)
{
    if (x < -708)
        return 0;
    if (x > 709)
        return __builtin_inf();
    const double n = floor(x * ONE_OVER_LOG_2 + 0.5), r = (x - n * LOG_2) - n * LOG_2_REST;
    double sum = 1;
#pragma clang loop unroll(full)
    for (int i = terms; i > 0; i--)
        sum = 1 + r * sum * (1. / i);
    const parts power = {.bits = (uint64_t)((int)n + 1023) << 52}; /* 2^n */
    return sum * power.number;
}

double cos(double x) { return cosine(x, 8); }

float cosf(float x) { return (float)cosine((double)x, 5); }

double exp(double x) { return exponential(x, 13); }

float expf(float x) { return (float)exponential((double)x, 7); }

double log(double x)
{
    parts m = {.number = x};
    int n = (int)(m.bits >> 52) - 1023;
    m.bits = (m.bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52; /* x = m 2^n, m in [1, 2) */
    if (m.number > 1.5) {
        m.number /= 2;
        n++;
    }
    const double s = (m.number - 1) / (m.number + 1), z = s * s;
    double sum = 0; /* log m = 2 (s + s^3 / 3 + s^5 / 5 + ...) */
    for (int i = 25; i > 0; i -= 2)
        sum = 1. / i + z * sum;
    return n * LOG_2 + (2 * s * sum + n * LOG_2_REST);
}
