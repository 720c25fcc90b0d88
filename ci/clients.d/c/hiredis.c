/* hiredis, one connection at a time: a client of ci/clients. ../README.md describes the arguments and the output. */

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define SERVERS 3
#define OPS 4

static long long now_ms(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (long long)now.tv_sec * 1000 + now.tv_usec / 1000;
}

static redisContext *connected(const char *server) {
    char host[256];
    const char *colon = strrchr(server, ':');
    snprintf(host, sizeof host, "%.*s", (int)(colon - server), server);
    return redisConnect(host, atoi(colon + 1));
}

/* Prints the numbers of a reply. Returns 0 if the reply has none. */
static int print_ids(FILE *out, const char *op, const char *key, const redisReply *reply) {
    if (reply->type != REDIS_REPLY_INTEGER && reply->type != REDIS_REPLY_ARRAY) return 0;
    for (size_t nth = 0; reply->type == REDIS_REPLY_ARRAY && nth < reply->elements; nth++)
        if (reply->element[nth]->type != REDIS_REPLY_INTEGER) return 0;
    fprintf(out, "%lld %s %s", now_ms(), op, key);
    if (reply->type == REDIS_REPLY_INTEGER) fprintf(out, " %lld", reply->integer);
    for (size_t nth = 0; reply->type == REDIS_REPLY_ARRAY && nth < reply->elements; nth++)
        fprintf(out, " %lld", reply->element[nth]->integer);
    fputc('\n', out);
    return 1;
}

static redisReply *call(redisContext *redis, const char *op, const char *key) {
    if (strcmp(op, "batch") == 0) return redisCommand(redis, "MINT %s 100", key);
    if (strcmp(op, "multi") != 0) return redisCommand(redis, "INCR %s", key);
    redisReply *reply = NULL;
    redisAppendCommand(redis, "MULTI");
    redisAppendCommand(redis, "INCR %s", key);
    redisAppendCommand(redis, "INCR %s", key);
    redisAppendCommand(redis, "EXEC");
    for (int nth = 0; nth < 4; nth++) {
        if (reply != NULL) freeReplyObject(reply);
        if (redisGetReply(redis, (void **)&reply) != REDIS_OK) return NULL;
    }
    return reply;
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    char *servers[SERVERS], *ops[OPS];
    int server_count = 0, op_count = 0, at[OPS] = {0};
    for (char *it = strtok(argv[2], ","); it != NULL && server_count < SERVERS; it = strtok(NULL, ",")) servers[server_count++] = it;
    for (char *it = strtok(argv[4], ","); it != NULL && op_count < OPS; it = strtok(NULL, ",")) ops[op_count++] = it;
    redisContext *redis[SERVERS] = {NULL};
    FILE *out = fopen(argv[5], "w");
    if (out == NULL) return 2;
    fprintf(out, "version %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    while (access(argv[6], F_OK) != 0) {
        for (int nth = 0; nth < op_count; nth++) {
            int place = at[nth] % server_count;
            const char *key = strcmp(ops[nth], "counter") == 0 ? "counters:{shared}" : argv[3];
            if (redis[place] == NULL) redis[place] = connected(servers[place]);
            redisReply *reply = redis[place]->err ? NULL : call(redis[place], ops[nth], key);
            if (reply == NULL || !print_ids(out, ops[nth], key, reply)) {
                fprintf(stderr, "%lld %s %s\n", now_ms(), ops[nth], reply == NULL ? redis[place]->errstr : reply->str);
                if (reply == NULL) {
                    redisFree(redis[place]);
                    redis[place] = NULL;
                }
                at[nth]++;
                usleep(50000);
            }
            if (reply != NULL) freeReplyObject(reply);
        }
        fflush(out);
        usleep(100000);
    }
    return fclose(out);
}
