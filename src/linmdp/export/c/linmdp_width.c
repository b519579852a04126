/* linmdp_width.c: see linmdp_width.h. */
#include "linmdp_width.h"

#include <math.h>
#include <stddef.h>

#include "linmdp_value.h"

#define LATE (UINT32_MAX / 2) /* the counter stops here */

static const linmdp_wide multiples[LINMDP_ARMS] = {LINMDP_AUTO_MULTIPLES};

void linmdp_width_init(linmdp_width *width)
{
    for (size_t level = 0; level < LINMDP_LEVELS; level++)
        for (size_t i = 0; i < LINMDP_D; i++)
            width->w[level][i] = 0;
    for (size_t arm = 0; arm < LINMDP_ARMS; arm++)
        width->weight[arm] = width->sum[arm] = width->squares[arm] = 0;
    width->mean_square = width->error_squares = width->errors = width->earned = width->reward = width->predicted = 0;
    width->episodes = width->due = 0;
    width->arm = width->waiting = 0;
}

/* The multiple that has been played least. */
static size_t rarest_arm(const linmdp_width *width)
{
    size_t rarest = 0;
    for (size_t arm = 1; arm < LINMDP_ARMS; arm++)
        if (width->weight[arm] < width->weight[rarest])
            rarest = arm;
    return rarest;
}

/* The upper confidence bound on the return of each multiple, and the largest mean. */
static linmdp_wide bounds(const linmdp_width *width, linmdp_wide bound[LINMDP_ARMS])
{
    linmdp_wide total = 0, spread = 0, largest = 0;
    for (size_t arm = 0; arm < LINMDP_ARMS; arm++) {
        const linmdp_wide mean = width->sum[arm] / width->weight[arm];
        total += width->weight[arm];
        spread += width->squares[arm] - width->weight[arm] * (mean * mean);
    }
    linmdp_wide variance = spread / total;
    variance = variance > 1e-12 ? variance : 1e-12;
    const linmdp_wide growth = LINMDP_WIDE_LOG(total > 2 ? total : 2);
    for (size_t arm = 0; arm < LINMDP_ARMS; arm++) {
        const linmdp_wide mean = width->sum[arm] / width->weight[arm];
        const linmdp_wide bonus = LINMDP_WIDE_SQRT(2 * variance * growth / width->weight[arm]);
        bound[arm] = mean + LINMDP_AUTO_CONFIDENCE * bonus;
        largest = arm == 0 || mean > largest ? mean : largest;
    }
    return largest;
}

/* The multiple with the largest bound; one that has hardly been played comes first. */
static size_t best_arm(const linmdp_width *width)
{
    linmdp_wide bound[LINMDP_ARMS];
    size_t best = rarest_arm(width);
    if (width->weight[best] < LINMDP_AUTO_PLAYED)
        return best;
    (void)bounds(width, bound);
    best = 0;
    for (size_t arm = 1; arm < LINMDP_ARMS; arm++)
        if (bound[arm] > bound[best])
            best = arm;
    return best;
}

int linmdp_width_beaten(const linmdp_width *width)
{
    linmdp_wide bound[LINMDP_ARMS];
    if (width->weight[rarest_arm(width)] < LINMDP_AUTO_PLAYED)
        return 0;
    const linmdp_wide largest = bounds(width, bound);
    return bound[width->arm] < largest;
}

linmdp_wide linmdp_width_choose(linmdp_width *width)
{
    width->arm = (uint8_t)best_arm(width);
    const linmdp_wide noise = LINMDP_AUTO_Z * LINMDP_WIDE_SQRT(width->mean_square);
    const linmdp_wide beta = multiples[width->arm] * (noise > LINMDP_AUTO_FLOOR ? noise : LINMDP_AUTO_FLOOR);
    return beta < LINMDP_AUTO_CEILING ? beta : LINMDP_AUTO_CEILING;
}

static void add_error(linmdp_width *width, linmdp_wide ahead)
{
    const linmdp_wide error = width->reward + ahead - width->predicted;
    width->error_squares += error * error;
    width->errors += 1;
}

void linmdp_width_see(linmdp_width *width, unsigned h, const linmdp_seen *seen, unsigned action, linmdp_wide reward)
{
    const linmdp_wide *w = width->w[LINMDP_LEVELS == 1 ? 0 : h];
    const linmdp_wide cap = linmdp_cap(h);
    linmdp_wide values[LINMDP_A];
    linmdp_real phi[LINMDP_D];
    for (unsigned a = 0; a < LINMDP_A; a++) {
        linmdp_phi(seen, a, phi);
        values[a] = linmdp_dot(phi, w);
    }
    if (width->waiting) {
        const linmdp_wide largest = linmdp_largest(values);
        add_error(width, LINMDP_DISCOUNT * (largest < cap ? largest : cap));
    }
    width->earned += reward;
    width->reward = reward;
    width->predicted = values[action];
    width->waiting = 1;
}

void linmdp_width_end(linmdp_width *width, int over)
{
    const linmdp_wide episodes = (linmdp_wide)width->episodes;
    if (width->waiting && over)
        add_error(width, 0);
    width->waiting = 0;
    if (width->errors > 0) {
        const linmdp_wide rate = 2 / (episodes + 2);
        width->mean_square += (width->error_squares / width->errors - width->mean_square) * (rate < 1 ? rate : 1);
    }
    const linmdp_wide kept = 1 - 1 / (episodes / LINMDP_AUTO_MEMORY + 20);
    for (size_t arm = 0; arm < LINMDP_ARMS; arm++) {
        width->weight[arm] *= kept;
        width->sum[arm] *= kept;
        width->squares[arm] *= kept;
    }
    width->weight[width->arm] += 1;
    width->sum[width->arm] += width->earned;
    width->squares[width->arm] += width->earned * width->earned;
    width->error_squares = width->errors = width->earned = 0;
    width->episodes += (uint32_t)(width->episodes < LATE);
}

void linmdp_width_renewed(linmdp_width *width)
{
    const uint32_t wait = (uint32_t)(LINMDP_AUTO_RENEW * (linmdp_wide)width->episodes);
    width->due = width->episodes + (wait > 1 ? wait : 1);
}
