/* SPDX-License-Identifier: MIT
 *
 * Goal: the numbers are those of the published generator, on every machine and for good. Method: the
 * first ones of a seed for which they are known (Rosetta Code, "Pseudo-random numbers/Splitmix64").
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "src/core/splitmix.h"

static void test_known(void **state)
{
	static const uint64_t known[] = { 6457827717110365317u, 3203168211198807973u,
		9817491932198370423u, 4593380528125082431u, 16408922859458223821u };
	uint64_t seed = 1234567, later = seed;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_true(pp_splitmix_next(&seed) == known[i]);
	pp_splitmix_skip(&later, 4);
	assert_true(pp_splitmix_next(&later) == known[4]);
	assert_true(pp_splitmix_mix(0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
