/* board.h: how a program on the board says something: by semihosting, to a debugger or to QEMU. */
#ifndef BOARD_H
#define BOARD_H

void say(const char *words);
void say_number(const char *words, unsigned long number);
void semihosting_exit(int failed);

#endif
