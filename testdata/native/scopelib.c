/*
 * The functions by which PyTorch 2 begins and ends a scope, under their names, in a
 * library that does nothing else: a job can open scopes by the thousand a second.
 */
struct text {
	const char *data;
	unsigned long length;
};

static volatile int open;

void enter(void **result, const struct text *name, void *arguments)
	__asm__("_ZN5torch8autograd8profiler25record_function_enter_newERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKSt8optionalIS6_E");
void end(void *function) __asm__("_ZN2at14RecordFunction3endEv");
void since2(void) __asm__("_ZN2at4_ops28scaled_dot_product_attention4callE");

/* The caller says in *result where the object is. */
void enter(void **result, const struct text *name, void *arguments)
{
	char *object = arguments;

	open += name->length != 0;
	*result = object;
	open++;
}

void end(void *function)
{
	open--;
	*(char *)function = 0;
	open--;
}

void since2(void) { open++; }
