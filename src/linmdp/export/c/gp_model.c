/* linmdp_model.c: the Gaussian process: its kernel, symmetric matrices, weights, and Q by a plan. */
#include <math.h>
#include <stddef.h>

#include "linmdp_gp.h"

linmdp_wide linmdp_kernel(linmdp_wide square)
{
    return (1 - LINMDP_SHORT) * LINMDP_WIDE_EXP(-0.5 * square) +
           LINMDP_SHORT * LINMDP_WIDE_EXP(-0.5 * LINMDP_SHORTER * LINMDP_SHORTER * square);
}

linmdp_wide linmdp_dot(const linmdp_wide *x, const linmdp_wide *y, unsigned n)
{
    linmdp_wide sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

void linmdp_product(const linmdp_wide *matrix, unsigned n, const linmdp_wide *x, linmdp_wide *y)
{
    const linmdp_wide *row = matrix;
    for (unsigned i = 0; i < n; row += ++i) {
        y[i] = row[i] * x[i];
        for (unsigned j = 0; j < i; j++) {
            y[i] += row[j] * x[j];
            y[j] += row[j] * x[i];
        }
    }
}

void linmdp_sweep(linmdp_wide *matrix, unsigned n, unsigned pivot)
{
    linmdp_wide column[LINMDP_P];
    for (unsigned i = 0; i < n; i++)
        column[i] = *linmdp_entry(matrix, i, pivot);
    const linmdp_wide part = 1 / column[pivot];
    linmdp_wide *row = matrix;
    for (unsigned i = 0; i < n; row += ++i) {
        const linmdp_wide scaled = column[i] * part;
        if (i == pivot) {
            for (unsigned j = 0; j < i; j++)
                row[j] = column[j] * part;
            row[i] = -part;
            continue;
        }
        for (unsigned j = 0; j <= i; j++)
            row[j] = j == pivot ? scaled : row[j] - scaled * column[j];
    }
}

void linmdp_weights(const linmdp_fit *fit, linmdp_wide own, unsigned n, linmdp_wide z[LINMDP_A][LINMDP_P],
                    linmdp_wide w[LINMDP_A][LINMDP_P], linmdp_wide w_0[LINMDP_P])
{
    linmdp_wide sum[LINMDP_P] = {0};
    for (unsigned a = 0; a < LINMDP_A; a++) {
        linmdp_product(fit->inverse[a], n, z[a], w[a]);
        for (unsigned i = 0; i < n; i++)
            sum[i] += w[a][i];
    }
    linmdp_product(fit->common, n, sum, w_0);
    for (unsigned i = 0; i < n; i++)
        w_0[i] /= own;
    for (unsigned a = 0; a < LINMDP_A; a++) {
        linmdp_product(fit->inverse[a], n, w_0, sum);
        for (unsigned i = 0; i < n; i++)
            w[a][i] += sum[i] / own;
    }
}

linmdp_wide linmdp_variance(const linmdp_fit *fit, linmdp_wide own, unsigned n, unsigned action, const linmdp_wide *phi)
{
    linmdp_wide alone[LINMDP_P], shared[LINMDP_P];
    linmdp_product(fit->inverse[action], n, phi, alone);
    linmdp_product(fit->common, n, alone, shared);
    return linmdp_dot(alone, phi, n) + linmdp_dot(shared, alone, n) / (own * own);
}

/* Features of a point, and what they leave over. */
static linmdp_wide look(const linmdp_plan *plan, const linmdp_point *x, linmdp_wide phi[LINMDP_P])
{
    linmdp_wide k[LINMDP_P], left = 1;
    const linmdp_wide *row = plan->inverse;
    for (unsigned i = 0; i < plan->features; row += ++i) {
        linmdp_wide square = 0;
        for (unsigned j = 0; j < LINMDP_K; j++) {
            const linmdp_wide away =
                ((linmdp_wide)x->x[j] - plan->centre[j]) * plan->unit[j] - plan->pivot[i][j];
            square += away * away;
        }
        k[i] = linmdp_kernel(square);
        phi[i] = linmdp_dot(row, k, i + 1);
        left -= phi[i] * phi[i];
    }
    return left > 0 ? left : 0;
}

void linmdp_plan_q(const linmdp_plan *plan, const linmdp_point *x, unsigned g, linmdp_wide q[LINMDP_A])
{
    linmdp_wide phi[LINMDP_P], deviation[LINMDP_A], hope[LINMDP_A];
    const linmdp_shares *s = &plan->shares;
    const linmdp_wide left = look(plan, x, phi), smooth = s->own + s->shared;
    const unsigned steps = g < 1 ? 1 : g < plan->steps ? g : plan->steps;
    const unsigned level = (steps + plan->stride - 1) / plan->stride - 1, n = plan->features;
    unsigned u = 0;
    while (u < plan->points && !linmdp_same_point(&plan->point[u], x))
        u++;
    for (unsigned a = 0; a < LINMDP_A; a++) {
        q[a] = 0;
        for (unsigned i = 0; i < n; i++)
            q[a] += phi[i] * (linmdp_wide)plan->w[level][a][i];
        if (u < plan->points) {
            deviation[a] = (linmdp_wide)plan->deviation[u][a];
            hope[a] = (linmdp_wide)plan->hope[u][a];
            continue;
        }
        const linmdp_wide square = linmdp_variance(&plan->fit, s->own, n, a, phi) + (s->exact + smooth * left);
        const linmdp_wide part = square / (smooth + s->exact);
        deviation[a] = LINMDP_WIDE_SQRT(square);
        hope[a] = plan->again + (1 - plan->again) * (part < 1 ? part : 1);
    }
    for (unsigned c = u < plan->points ? plan->begins[u] : 1; u < plan->points && c < plan->begins[u + 1]; c++)
        q[plan->action[c]] += (linmdp_wide)plan->own[level][c];
    for (unsigned a = 0; a < LINMDP_A; a++) {
        const linmdp_wide cap = plan->cap[level], low = plan->low[level];
        q[a] += plan->top[level] + LINMDP_BETA * plan->scale[level] * deviation[a];
        q[a] = q[a] < cap ? q[a] : cap;
        q[a] += hope[a] * (plan->reach < cap - q[a] ? plan->reach : cap - q[a]);
        q[a] = q[a] > low ? q[a] : low;
    }
}
