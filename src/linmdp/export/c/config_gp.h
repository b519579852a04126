/* linmdp_config.h: sizes and parameters, for all other files. Written by `linmdp export`.
 *
 * $run
 */
#ifndef LINMDP_CONFIG_H
#define LINMDP_CONFIG_H

#include <stdint.h>

typedef $kind linmdp_real;  /* states as they are given, rewards, Q, and most of what planning computes */
typedef double linmdp_wide; /* matrices, and sums over many numbers: 24 bits would not do */
typedef float linmdp_number; /* a coordinate in memory: a state is what single precision tells apart */
#define LINMDP_REAL_EXP exp$suffix
#define LINMDP_REAL_SQRT sqrt$suffix
#define LINMDP_WIDE_EXP exp
#define LINMDP_WIDE_SQRT sqrt
#define LINMDP_REAL_MAX $most
#define LINMDP_WIDE_MAX 1e300

typedef $action linmdp_index_a; /* an action in memory */

#define LINMDP_H          $H /* steps of an episode */
#define LINMDP_A          $A /* actions */
#define LINMDP_S          $S /* states */
#define LINMDP_N          $N /* numbers in a state */
#define LINMDP_D          $K /* as many numbers a state is kept as */
#define LINMDP_CLOCK      $clock /* 1: dynamics depend on the step, which is a coordinate, too */
#define LINMDP_K          $K /* coordinates in memory */
#define LINMDP_STATES     $states /* states that transitions begin with, at most */
#define LINMDP_ROWS       $rows /* transitions, */
#define LINMDP_HELD       $held /* states at either end of them, */
#define LINMDP_CELLS      $cells /* and pairs of a state and an action that was tried there */
#define LINMDP_P          $features /* smooth features of a state, at most */
#define LINMDP_L          $ahead /* steps that are planned, at most, */
#define LINMDP_KEPT       $kept /* and levels of them that are kept for acting */
#define LINMDP_BETA       $beta /* width of the bonus, in posterior deviations */
#define LINMDP_LENGTH     $length /* of the kernel, in ranges of coordinates, for three of them */
#define LINMDP_SHORT      $short /* the share of the kernel that is of a shorter length, */
#define LINMDP_SHORTER    $shorter /* and how much shorter that is */
#define LINMDP_LEFT_OUT   $left_out /* features that add less than this to any state are left out */
#define LINMDP_CLOSE_BY   $close_by /* differences of that which are rounding */
#define LINMDP_NOISE      $noise /* the least noise, and */
#define LINMDP_EXACT      $exact /* the least that a state has of its own where states come again: shares of the targets */
#define LINMDP_EVIDENCE   $evidence /* steps towards the likeliest shares at a planning */
#define LINMDP_LEAST      $least /* bounds of the shares */
#define LINMDP_MOST       $greatest
#define LINMDP_START      $start /* shares before the first data */
#define LINMDP_SAME       $same /* returns that differ by no more than this share of the largest reward are equal */
#define LINMDP_DISCOUNT   $discount /* of rewards, for each step */
#define LINMDP_REPLAN     $replan /* plan when the number of steps has grown by this fraction */
#define LINMDP_SCOUT      $scout /* scouts: bonus, in ranges of returns, */
#define LINMDP_EVERY      $every /* one episode in so many at most, */
#define LINMDP_BUDGET     $budget /* about what they lose, in ranges over the root of the episodes, */
#define LINMDP_SETTLED    $settled /* and how near the value must be to what is earned */
#define LINMDP_PROBES     $probes /* transitions that decide the first radius of merging */
#define LINMDP_LEFT       $left /* merging goes on until this share is left, */
#define LINMDP_WIDER      $wider /* and the radius grows by this */
#define LINMDP_TIE        $tie /* Q that differ by less, as a part of the largest, are equal */
#define LINMDP_CLOSE      $close /* the self-test: how far Q may be from that in Python, as a part of the largest */
#define LINMDP_FAR        $far /* at this share of steps it may be further, since rounding decides */
#define LINMDP_ALONE      $alone /* there is no frozen policy */
#define LINMDP_REWARD_LOW  (-LINMDP_REAL_MAX)
#define LINMDP_REWARD_HIGH LINMDP_REAL_MAX

#endif
