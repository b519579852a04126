/* selftest_wasm.c: the self-test for selftest.mjs. */
#include "selftest.h"

static linmdp_learner learner;
static linmdp_report report;

/* 0 if it passes */
__attribute__((export_name("selftest"), used)) int wasm_selftest(void) { return linmdp_selftest(&learner, &report); }

__attribute__((export_name("bytes"), used)) double wasm_bytes(void) { return sizeof learner; }
__attribute__((export_name("steps"), used)) double wasm_steps(void) { return (double)report.steps; }
__attribute__((export_name("other_actions"), used)) double wasm_other(void) { return (double)report.other_actions; }
__attribute__((export_name("close_calls"), used)) double wasm_close(void) { return (double)report.close_calls; }
__attribute__((export_name("refused"), used)) double wasm_refused(void) { return (double)report.refused; }
__attribute__((export_name("policy_mistakes"), used)) double wasm_policy(void) { return (double)report.policy_mistakes; }
__attribute__((export_name("largest_error"), used)) double wasm_error(void) { return report.largest_error; }
