import type { Transport } from '../../client/transport.ts';
import { errorMessage } from '../../objects/status.ts';
import { treePicture } from '../../view/pictures/tree-of-boxes.ts';
import { boxOf } from '../../view/pictures/way.ts';
import { readHttpObjects, readTracedCluster } from '../../view/trace-cluster.ts';
import { traceConnection } from '../../view/trace-connection.ts';
import { ownCommand, quoted } from '../own-command.ts';
import type { Question } from './state.ts';
import type { Line } from './text.ts';

/** What answers questions of the live view. */
export interface AnswerSources {
  readonly transport: Transport;
  /** Undefined: no page is served. */
  readonly pageLink: () => Promise<string | undefined>;
  /** Behind `servicenet` in a command to copy, so that it asks this cluster. */
  readonly clusterFlags: readonly string[];
}

/** The lines that answer a question; also why there is no answer. */
export async function answerTo(question: Question, sources: AnswerSources): Promise<readonly Line[]> {
  try {
    return question.kind === 'way' ? await wayLines(question, sources) : await pageLines(question, sources);
  } catch (error) {
    return [{ text: errorMessage(error), style: 'red', indent: 2 }];
  }
}

/** What `servicenet trace -o tree` prints, and how it is called. */
async function wayLines(
  { from, to, protocol }: Question & { readonly kind: 'way' },
  { transport, clusterFlags }: AnswerSources,
): Promise<readonly Line[]> {
  const traced = await readTracedCluster(transport, {
    ...{ clusterCidrs: undefined, masqueradeAll: undefined, nodePortAddresses: undefined },
  });
  const report = await traceConnection(
    traced,
    {
      ...{ source: from, destination: to, namespace: 'default', protocol },
      ...{ outsideAddresses: undefined, checker: undefined },
    },
    () => readHttpObjects(transport),
  );
  const words = [...clusterFlags, ...(protocol === 'TCP' ? [] : ['--protocol', protocol]), from, to];
  return [
    { text: `${ownCommand()} trace ${words.map(quoted).join(' ')}`, style: 'dim', isCopied: true },
    { text: '' },
    ...treePicture(boxOf(report, from))
      .trimEnd()
      .split('\n')
      .map((text): Line => ({ text, indent: text.search(/[^ │├└─]/) })),
  ];
}

async function pageLines(
  { place }: Question & { readonly kind: 'page' },
  { pageLink, clusterFlags }: AnswerSources,
): Promise<readonly Line[]> {
  const link = await pageLink();
  if (link === undefined) {
    return [
      { text: 'No page of this cluster is served. This serves one:' },
      { text: '' },
      { text: `  ${[ownCommand(), 'page', ...clusterFlags.map(quoted)].join(' ')}`, isCopied: true },
    ];
  }
  return [
    { text: 'The page, where it shows what is selected:' },
    { text: '' },
    { text: link.replace('/#', `${place}#`), style: 'bold', isCopied: true },
  ];
}
