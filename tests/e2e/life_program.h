// The scenario of life_program that has a file of its own.
#pragma once

// Uses CUDA with unusual settings of its own and prints what became of them; two runs can be compared line by line.
int manners(const char* umask_text);
