import { describe, expect, it } from 'vitest';
import type { LogLine } from '../../../../src/controllers/kubelet/container-runtime.ts';
import { logBytes, logOptions, logRefusal } from '../../../../src/emulation/kubelet-api/logs.ts';
import type { ContainerStatus } from '../../../../src/objects/types/core.generated.ts';

const line = (second: number, text: string, more: Partial<LogLine> = {}): LogLine => ({
  time: `2026-01-01T00:00:0${second}.000000000Z`,
  ...{ stream: 'stdout', isWhole: true, text: Buffer.from(text), ...more },
});
const log: readonly LogLine[] = [
  line(0, 'zero'),
  line(1, 'one', { stream: 'stderr' }),
  line(2, 'two, ', { isWhole: false }),
  line(3, 'to its end'),
  line(4, 'four'),
];

/** From the last so many lines on, in pieces of two. */
async function* last(count = log.length): AsyncGenerator<readonly LogLine[]> {
  const wanted = log.slice(Math.max(0, log.length - count));
  for (let i = 0; i < wanted.length; i += 2) yield await Promise.resolve(wanted.slice(i, i + 2));
}

/** What the kubelet answers to a query, five seconds after the first line. */
async function answer(query: string): Promise<string> {
  const options = logOptions(new URLSearchParams(query), Date.UTC(2026, 0, 1, 0, 0, 5));
  let text = '';
  for await (const bytes of logBytes(last(options.tailLines), options)) text += bytes.toString();
  return text;
}

describe('the log of a container, asked for', () => {
  it.each([
    ['', 'zero\none\ntwo, to its end\nfour\n'],
    ['tailLines=1', 'four\n'],
    ['tailLines=2', 'to its end\nfour\n'],
    ['tailLines=0', ''],
    ['tailLines=100', 'zero\none\ntwo, to its end\nfour\n'],
    ['limitBytes=7', 'zero\non'],
    ['limitBytes=7&tailLines=1', 'four\n'],
    ['sinceSeconds=1', 'four\n'],
    ['sinceTime=2026-01-01T00:00:01Z', 'one\ntwo, to its end\nfour\n'],
    ['sinceTime=2026-01-01T00:00:01Z&tailLines=1', 'four\n'],
    ['stream=Stderr', 'one\n'],
    ['stream=Stdout', 'zero\ntwo, to its end\nfour\n'],
    ['stream=All', 'zero\none\ntwo, to its end\nfour\n'],
    [
      'timestamps=true&tailLines=3',
      '2026-01-01T00:00:02.000000000Z two, to its end\n2026-01-01T00:00:04.000000000Z four\n',
    ],
  ])('with %s', async (query, text) => {
    expect(await answer(query)).toBe(text);
  });

  it('reads no further than its limit', async () => {
    let read = 0;
    async function* endless(): AsyncGenerator<readonly LogLine[]> {
      for (;;) yield await Promise.resolve([line(++read % 10, 'x'.repeat(99))]);
    }
    const options = logOptions(new URLSearchParams('limitBytes=1000&follow=true'), 0);
    let bytes = 0;
    for await (const chunk of logBytes(endless(), options)) bytes += chunk.length;
    expect([bytes, read]).toEqual([1000, 10]);
  });
});

describe('a container without a log', () => {
  const ended = { terminated: { exitCode: 1 } };
  const waiting = (reason: string) => ({ state: { waiting: { reason } } });

  it.each<[string, Partial<ContainerStatus> | undefined, boolean, string | undefined]>([
    ['is not known yet', undefined, false, 'container "main" in pod "web" is not available'],
    ['runs', { state: { running: {} } }, false, undefined],
    ['has ended', { state: ended }, false, undefined],
    ['waits after its end', { ...waiting('CrashLoopBackOff'), lastState: ended }, false, undefined],
    [
      'waits for init containers',
      waiting('PodInitializing'),
      false,
      'container "main" in pod "web" is waiting to start: PodInitializing',
    ],
    [
      'waits for its image',
      waiting('ErrImagePull'),
      false,
      `container "main" in pod "web" is waiting to start: image can't be pulled`,
    ],
    [
      'waits for it again',
      waiting('ImagePullBackOff'),
      false,
      'container "main" in pod "web" is waiting to start: trying and failing to pull image',
    ],
    ['has no state', {}, false, 'container "main" in pod "web" is waiting to start - no logs yet'],
    [
      'runs for the first time',
      { state: { running: {} } },
      true,
      'previous terminated container "main" in pod "web" not found',
    ],
    ['runs again', { state: { running: {} }, lastState: ended }, true, undefined],
  ])('%s', (_what, status, previous, refusal) => {
    const own = { name: 'main', image: 'x', imageID: '', ready: false, restartCount: 0, ...status };
    const pod = {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [] } },
      status: { initContainerStatuses: status === undefined ? [] : [own] },
    };
    expect(logRefusal(pod, 'main', previous)).toBe(refusal);
  });
});
