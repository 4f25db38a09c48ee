import type { Socket } from 'node:net';
import { readFlowFilter } from '../../network/flows/flow.ts';
import { at, numberAt } from '../../objects/json.ts';
import type { ClusterNetwork } from '../cluster-network.ts';

/** Bytes that wait to be sent to a viewer; above, flows are dropped and counted. */
const maxUnread = 4 * 1024 * 1024;
/** Flows that are known, for a viewer that does not say how many. */
const usualLast = 200;

/**
 * Answers a viewer of flows until it goes away: one line of JSON with those that are known, `{"known":[…]}`, then one for
 * each of what comes, `{"flows":[…],"lost":0}`. `lost` is what was not told since the viewer came.
 *
 * @param request its members are those of {@link readFlowFilter}, and `last`.
 * @throws {Error} where there can be no flows.
 */
export async function serveFlows(
  socket: Socket,
  network: ClusterNetwork,
  request: unknown,
  closed: Promise<unknown>,
): Promise<void> {
  let untold = 0;
  let hasKnown = false;
  const early: string[] = [];
  const write = (line: object): void => void socket.write(`${JSON.stringify(line)}\n`);
  const last = at(request, 'last') === undefined ? usualLast : numberAt(request, 'last');
  const looking = await network.watchFlows(readFlowFilter(request), last, (news) => {
    if (news === undefined) {
      socket.end(`${JSON.stringify({ error: 'the cluster network has ended' })}\n`);
    } else if (!hasKnown) early.push(JSON.stringify(news));
    else if (socket.writableLength > maxUnread) untold += news.flows.length;
    else write({ flows: news.flows, lost: news.lost + untold });
  });
  try {
    write({ known: looking.known });
    for (const line of early) socket.write(`${line}\n`);
    hasKnown = true;
    await closed;
  } finally {
    await looking.end();
  }
}
