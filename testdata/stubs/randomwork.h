/* A part of cudacalls.c and hipcalls.c, which say what STREAM, EVENT and the
 * calls are: two threads give work to the same streams, wait, ask and time as a
 * seed has it. What a recording claims of the device's time has to hold whatever
 * the order is. */
#include <pthread.h>

enum { STREAMS = 4, EVENTS = 4, MOVES = 160 };

static STREAM shared[STREAMS];

struct player {
	unsigned seed;
	EVENT event[EVENTS];
	bool recorded[EVENTS];
};

static unsigned draw(struct player *p, unsigned below) { return rand_r(&p->seed) % below; }

static void *play(void *argument)
{
	struct player *p = argument;

	for (int i = 0; i < EVENTS; i++)
		NEW_EVENT(&p->event[i]);
	for (int move = 0; move < MOVES; move++) {
		STREAM on = shared[draw(p, STREAMS)];
		int e = draw(p, EVENTS), other = (e + 1 + draw(p, EVENTS - 1)) % EVENTS;

		switch (draw(p, 16)) {
		case 0: case 1: case 2: case 3: case 4:
			GIVE(on, 30 + draw(p, 600));
			break;
		case 5:
			GIVE_MORE(on, 1000 * (1 + draw(p, 200)));
			break;
		case 6: case 7:
			RECORD(p->event[e], on);
			p->recorded[e] = true;
			break;
		case 8:
			if (p->recorded[e])
				STREAM_WAITS(on, p->event[e]);
			break;
		case 9:
			if (p->recorded[e])
				ASK_EVENT(p->event[e]);
			break;
		case 10:
			ASK_STREAM(on);
			break;
		case 11:
			if (p->recorded[e])
				WAIT_EVENT(p->event[e]);
			break;
		case 12:
			WAIT_STREAM(on);
			break;
		case 13:
			if (!draw(p, 4))
				WAIT_ALL();
			break;
		case 14: { /* how long this much took, between what the other thread gives */
			float ms;

			RECORD(p->event[e], on);
			GIVE(on, 100 + draw(p, 400));
			GIVE(on, 100 + draw(p, 400));
			RECORD(p->event[other], on);
			p->recorded[e] = p->recorded[other] = true;
			WAIT_EVENT(p->event[other]);
			TIME_BETWEEN(&ms, p->event[e], p->event[other]);
			break;
		}
		case 15:
			usleep(draw(p, 500));
			break;
		}
	}
	return NULL;
}

static void random_work(unsigned seed)
{
	struct player players[2] = { { .seed = seed }, { .seed = seed * 7919 + 1 } };
	pthread_t second;

	for (int i = 0; i < STREAMS; i++)
		NEW_STREAM(&shared[i], i);
	pthread_create(&second, NULL, play, &players[1]);
	play(&players[0]);
	pthread_join(second, NULL);
	WAIT_ALL();
}
