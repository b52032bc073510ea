"""One set over many keys of a cluster, that tells which items are new.

A filter is one key, and a key is on one node. So the set is cut into partitions: filters with the names
`seen:{00}`, `seen:{01}`..., which the cluster spreads over its nodes. What an item's partition is, clients agree on
among themselves: the CRC-32 of the item modulo the number of partitions. Any hash would do; this one is in the
standard library here, and short enough to write out anywhere. (It need not be the cluster's own hash, of keys.)
The number of partitions is chosen once, larger than there will ever be nodes, for it cannot change later.

A lost reply: `CF.INSERTNX` adds an item and tells whether it was new, once. If the reply is lost (the connection
breaks, the node dies, it takes too long) then nobody knows whether the item was added, and the same command again
may answer "seen" for an item that no one has worked on. So such an item is *in doubt*, and counts as new; and it is
inserted again, so that it is in. Hence no item is ever lost, and one in doubt may be worked on twice.

That is why this does not use the pipeline of `RedisCluster`, which repeats by itself what failed, but one to each
node, which does not.

Three things are beyond this file. The cluster copies to its replicas after it has answered, so a primary that dies
may take its last inserts with it, and those items are new once more. A filter answers "seen" for a few items that
are new, at the rate that it was made for. And a worker that dies with new items in its hands has lost them, unless
it wrote them down.
"""

import time
import zlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from redis import exceptions
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

# Nothing was added, for the slot moves, or has no primary, or has one that is not ready.
REFUSED = (
    exceptions.MovedError,
    exceptions.AskError,
    exceptions.TryAgainError,
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
    exceptions.ReadOnlyError,
    exceptions.SlotNotCoveredError,
)
# Nobody knows whether anything was added.
DOUBT = (exceptions.ConnectionError, exceptions.TimeoutError)


class Incomplete(Exception):
    """A batch that was not done, or not all of it.

    `answers` has what is known of each item: whether it is new, as ever, or None if it was not added. Those that are
    new are yours to work on: nobody will be told of them again.
    """

    def __init__(self, why, answers):
        super().__init__(why)
        self.answers = answers


class Seen:
    def __init__(
        self,
        nodes,
        name="seen",
        partitions=64,
        capacity=1_000_000,
        error_rate=1e-6,
        timeout=2.0,
        patience=30.0,
    ):
        """Connects to a cluster by some of its nodes ("host:port"). Makes the set, if it is not there.

        All clients of a set have to agree on its name, partitions, capacity and error_rate. After `timeout` seconds
        a reply is given up as lost, and after `patience` seconds the cluster, which takes some to elect a primary.
        """
        self.name = name
        self.partitions = partitions
        self.capacity = -(-capacity // partitions)
        self.error_rate = error_rate
        self.patience = patience
        self.threads = ThreadPoolExecutor()
        nodes = [address.rsplit(":", 1) for address in nodes]
        for _ in self._attempts():
            try:
                self.cluster = RedisCluster(
                    startup_nodes=[ClusterNode(host, int(port)) for host, port in nodes],
                    socket_timeout=timeout,
                    socket_connect_timeout=timeout,
                )
                self._reserve()
                return
            except (*DOUBT, *REFUSED, exceptions.RedisClusterException) as error:
                last = error
        raise last

    def insert_new(self, items):
        """Adds items, each of which is in the batch once. Tells, in their order, which are new."""
        answers = [None] * len(items)
        shares = self._shares(items)
        for is_repeat in self._attempts():
            if is_repeat:
                self._look_again()
            trouble = None
            again = {}
            for partition, reply in self._send(shares, items):
                positions = shares[partition]
                if isinstance(reply, list):
                    for position, answer in zip(positions, reply):
                        if answer == -1:
                            trouble = "the set is full: allow its filters more memory"
                        elif answers[position] is None:  # else it was in doubt, and stays new
                            answers[position] = answer == 1
                elif self._is_refused(reply) or isinstance(reply, DOUBT):
                    if isinstance(reply, DOUBT):
                        for position in positions:
                            answers[position] = True
                    again[partition] = positions
                    last = reply
                else:
                    trouble = f"the cluster does not answer as it should: {reply}"
            if trouble:
                raise Incomplete(trouble, answers)
            if not again:
                return answers
            shares = again
        raise Incomplete(f"the cluster does not answer as it should: {last}", answers)

    def _attempts(self):
        """Goes on for as long as there is patience, with longer and longer pauses. Tells which is not the first."""
        end, pause = time.monotonic() + self.patience, 0.02
        yield False
        while time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, 1)
            yield True

    def _look_again(self):
        """Asks the cluster where everything is by now."""
        try:
            self.cluster.nodes_manager.initialize()
            self._reserve()
        except (*DOUBT, *REFUSED, exceptions.RedisClusterException):
            pass  # The next attempt fails, and then this is tried again.

    def _reserve(self):
        """Makes the partitions that are not there. Whoever comes first makes them."""
        commands = {
            partition: ("CF.RESERVE", self._key(partition), self.capacity, "ERROR_RATE", self.error_rate)
            for partition in range(self.partitions)
        }
        for _, reply in self._pipelines(commands):
            if isinstance(reply, Exception) and str(reply) != "item exists":
                raise reply

    def _shares(self, items):
        """The positions of the items of each partition."""
        shares = defaultdict(list)
        for position, item in enumerate(items):
            shares[partition_of(item, self.partitions)].append(position)
        return shares

    def _send(self, shares, items):
        # Keys are made by `_reserve` alone, so that they have the rate that was chosen.
        return self._pipelines(
            {
                partition: ("CF.INSERTNX", self._key(partition), "NOCREATE", "ITEMS", *(items[at] for at in positions))
                for partition, positions in shares.items()
            }
        )

    def _pipelines(self, commands):
        """Sends each partition's command to its node, all at once, and gives replies, or errors instead."""
        nodes, replies = defaultdict(list), []
        for partition in commands:
            try:
                node = self.cluster.get_node_from_key(self._key(partition))
                nodes[node.name].append(partition)
            except exceptions.SlotNotCoveredError as error:
                replies.append((partition, error))

        def exchange(name, partitions):
            try:
                connection = self.cluster.get_redis_connection(self.cluster.get_node(node_name=name))
                # What to do about a lost reply is not for the client to decide.
                connection.set_retry(Retry(NoBackoff(), 0))
                pipeline = connection.pipeline(transaction=False)
                for partition in partitions:
                    pipeline.execute_command(*commands[partition])
                return list(zip(partitions, pipeline.execute(raise_on_error=False)))
            except DOUBT as error:
                return [(partition, error) for partition in partitions]

        for some in self.threads.map(exchange, nodes.keys(), nodes.values()):
            replies += some
        return replies

    def _is_refused(self, error):
        # A primary may also die before its replica hears of the key.
        return isinstance(error, REFUSED) or str(error).startswith(("NOREPLICAS", "not found"))

    def _key(self, partition):
        # The cluster looks at what is between the braces only.
        return f"{self.name}:{{{partition:02}}}"


def partition_of(item, partitions):
    return zlib.crc32(item.encode() if isinstance(item, str) else item) % partitions
