// The form of a candidate in each language, as text for prompts: what the file has to define, how
// it is compiled, what it may use, its limits, and a worked file. A model that writes candidates
// has nothing else; tests compile the worked files.
#ifndef WORKER_PROMPT_PROMPT_FORM_H
#define WORKER_PROMPT_PROMPT_FORM_H

// The worked files are for this operation: y[r] = a times the sum of row r of x, a rows x cols
// matrix of float.
extern const char prompt_form_c[], prompt_form_cuda[], prompt_form_python[];
extern const char prompt_example_c[], prompt_example_cuda[], prompt_example_python[];

#endif
