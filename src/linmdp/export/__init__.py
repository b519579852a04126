"""From an agent to a C99 library with static memory: the frozen policy, and the learner itself."""
