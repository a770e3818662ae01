// Measures libibmad's field access as bench/run measures the structures of
// package mad: every field of a structure that the library knows, one after
// another.
//
//	codec decode|encode NodeInfo|PortInfo|PathRecord TIMES
//
// It prints the nanoseconds that one structure takes.
#include <infiniband/mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// range has fields from one up to, without, another.
struct range {
	enum MAD_FIELDS first, end;
};

// structure has its fields in up to two ranges.
static const struct structure {
	const char *name;
	struct range of[2];
} structures[] = {
	{"NodeInfo", {{IB_NODE_FIRST_F, IB_NODE_LAST_F}}},
	{"PortInfo", {{IB_PORT_FIRST_F, IB_PORT_LAST_F}, {IB_PORT_CAPMASK2_F, IB_PORT_LINK_SPEED_EXT_LAST_F}}},
	{"PathRecord", {{IB_SA_PR_DGID_F, IB_SA_PR_SL_F + 1}}},
};

static uint8_t wire[256];
static uint8_t value[64][16]; // wide enough for a GID

static void decode(const struct structure *s)
{
	int n = 0;
	for (int r = 0; r < 2; r++)
		for (int f = s->of[r].first; f < (int)s->of[r].end; f++)
			mad_decode_field(wire, f, value[n++]);
}

static void encode(const struct structure *s)
{
	int n = 0;
	for (int r = 0; r < 2; r++)
		for (int f = s->of[r].first; f < (int)s->of[r].end; f++)
			mad_encode_field(wire, f, value[n++]);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	const struct structure *s = NULL;
	void (*run)(const struct structure *) = NULL;
	if (argc == 4) {
		for (size_t i = 0; i < sizeof structures / sizeof *structures; i++)
			if (strcmp(argv[2], structures[i].name) == 0)
				s = &structures[i];
		if (strcmp(argv[1], "decode") == 0)
			run = decode;
		else if (strcmp(argv[1], "encode") == 0)
			run = encode;
	}
	long times = argc == 4 ? atol(argv[3]) : 0;
	if (!s || !run || times <= 0) {
		fprintf(stderr, "usage: codec decode|encode NodeInfo|PortInfo|PathRecord TIMES\n");
		return 2;
	}
	memset(wire, 0x5a, sizeof wire);
	decode(s); // so that there is something to encode
	double begin = now();
	for (long n = 0; n < times; n++)
		run(s);
	printf("%.4g\n", (now() - begin) * 1e9 / times);
	return 0;
}
