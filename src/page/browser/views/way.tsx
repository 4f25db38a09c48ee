import { useEffect, useRef, useState } from 'preact/hooks';
import { mostPods, type TraceAnswer, type TraceRequest } from '../../messages.ts';
import { EndInputs, ProtocolSelect, protocols } from '../parts/connection-inputs.tsx';
import { commandLine } from '../parts/command-line.ts';
import { usePage } from '../parts/page-context.ts';
import { Empty, Toolbar } from '../parts/view-parts.tsx';
import { digits, PlaceLink, Reason, Text } from '../parts/words.tsx';
import { AnswerError, post } from '../state/session.ts';
import { placeOf, secondText, withQuery } from '../state/place.ts';
import { WayAnswer, wayPictureOf } from './way-answer.tsx';

/** What became of a question. */
type Asked =
  | { readonly kind: 'asking' }
  | { readonly kind: 'answered'; readonly answer: TraceAnswer }
  | { readonly kind: 'refused'; readonly reason: string; readonly message: string };

/** The server sends one packet a second. */
const restMs = 1000;

/** The way of one packet, asked by a form. */
export function WayView() {
  const { rows, place, go, atMs } = usePage();
  const { from = '', to = '', protocol = 'TCP', ns } = place.query;
  const [typed, setTyped] = useState({ from, to });
  const [asked, setAsked] = useState<Asked>();
  const latest = useRef(0);
  const isClicked = useRef(false);
  const [isSending, setSending] = useState(false);
  const [isResting, setResting] = useState(false);
  useEffect(() => setTyped({ from, to }), [from, to]);

  const trace = async (request: TraceRequest): Promise<void> => {
    const number = ++latest.current;
    const isCheck = request.check === true;
    // What the plan says stays while a packet is on its way.
    setAsked((before) => (isCheck && before?.kind === 'answered' ? before : { kind: 'asking' }));
    setSending(isCheck);
    const next = await post('/data/trace', request).then(
      (answer): Asked => ({ kind: 'answered', answer }),
      (cause: unknown): Asked => ({
        kind: 'refused',
        reason: cause instanceof AnswerError ? cause.reason : 'Error',
        message: cause instanceof Error ? cause.message : String(cause),
      }),
    );
    if (isCheck) {
      setResting(true);
      setTimeout(() => setResting(false), restMs);
    }
    if (number !== latest.current) return;
    setAsked(next);
    setSending(false);
  };
  const requestOf = (question: { from: string; to: string }): TraceRequest => {
    const known = protocols.find((each) => each === protocol) ?? 'TCP';
    return {
      ...{ ...question, protocol: known, ...(ns === undefined ? {} : { namespace: ns }) },
      ...(atMs === undefined ? {} : { at: secondText(atMs) }),
    };
  };
  // A link asks at once; the plan sends nothing. `check` in it only fills the form: it is for a click.
  useEffect(() => {
    const isCheck = isClicked.current;
    isClicked.current = false;
    if (from === '' || to === '') setAsked(undefined);
    else void trace({ ...requestOf({ from, to }), ...(isCheck ? { check: true } : {}) });
  }, [from, to, protocol, ns, atMs]);

  const whyNoCheck =
    atMs !== undefined
      ? 'what is shown is past'
      : protocol === 'TCP'
        ? rows.cluster?.whyNoCheck
        : 'real connections are opened by TCP alone';
  const flags = rows.cluster?.clusterFlags ?? [];
  const command = commandLine(
    ...['servicenet', 'trace', ...flags, ...(ns === undefined ? [] : ['-n', ns])],
    ...(protocol === 'TCP' ? [] : ['--protocol', protocol]),
    ...(place.query['check'] === '1' ? ['--check'] : []),
    ...[from === '' ? 'FROM' : from, to === '' ? 'TO' : to],
  );
  const answer = asked?.kind === 'answered' ? asked.answer : undefined;
  const submit = (isCheck: boolean): void => {
    if (typed.from === from && typed.to === to) {
      void trace({ ...requestOf(typed), ...(isCheck ? { check: true } : {}) });
      return;
    }
    isClicked.current = isCheck;
    go(withQuery(place, { ...typed, check: isCheck ? '1' : undefined }));
  };
  return (
    <div class="view way">
      <form
        class="question"
        onSubmit={(event) => {
          event.preventDefault();
          submit(false);
        }}
      >
        <EndInputs
          ends={typed}
          toPlaceholder="svc/shop/catalog:80, http://…, outside:443"
          onInput={setTyped}
        />
        <ProtocolSelect protocol={protocol} />
        <span class="buttons">
          <button type="submit" class="primary" disabled={typed.from === '' || typed.to === ''}>
            Trace
          </button>
          <button
            type="button"
            disabled={
              isSending || isResting || whyNoCheck !== undefined || typed.from === '' || typed.to === ''
            }
            aria-describedby={whyNoCheck === undefined ? undefined : 'why-no-check'}
            onClick={() => submit(true)}
          >
            {isSending ? 'Sending …' : 'Send a real one'}
          </button>
        </span>
        {whyNoCheck !== undefined && (
          <p id="why-no-check" class="muted">
            No real packet: <Text>{whyNoCheck}</Text>
          </p>
        )}
        {ns === undefined && podsIn(rows) > mostPods && (
          <p class="muted">
            Pods are not offered, as there are {digits(podsIn(rows))}: choose a namespace above, or type
            pod/NAMESPACE/NAME.
          </p>
        )}
      </form>
      {asked?.kind === 'asking' && <p class="muted waiting">asking …</p>}
      {asked?.kind === 'refused' && (
        <p class="notice bad" role="alert">
          <Reason word={asked.reason} /> <Text>{asked.message}</Text>
        </p>
      )}
      {answer !== undefined && (
        <>
          <Toolbar
            summary={
              <>
                <Text>{from}</Text> → <Text>{to}</Text>
              </>
            }
            picture={() => wayPictureOf(answer, from)}
            name="way"
            command={command}
            hasTable
          />
          <WayAnswer answer={answer} isTable={place.query['table'] === '1'} />
        </>
      )}
      {asked === undefined && <Examples />}
    </div>
  );
}

/** Three questions that this cluster can answer. */
function Examples() {
  const { rows, place } = usePage();
  const workload = rows.all('workload').find(({ namespace }) => namespace !== 'kube-system');
  const from = workload?.key ?? 'outside';
  const services = rows.all('service').filter(({ namespace }) => namespace !== 'kube-system');
  const other = services.find(({ type }) => type === 'ClusterIP') ?? services[0];
  const balanced = services.find(({ type }) => type === 'LoadBalancer');
  const questions = [
    ...(other === undefined ? [] : [{ from, to: `svc/${other.key}` }]),
    ...(balanced === undefined ? [] : [{ from: 'outside', to: `svc/${balanced.key}` }]),
    { from, to: 'outside:443' },
  ];
  return (
    <Empty sentence="Where does a packet go, and who decides? Ask for one way, or begin with:">
      <ul class="examples">
        {questions.map((question) => (
          <li key={`${question.from} ${question.to}`}>
            <PlaceLink to={placeOf('way', place, question)}>
              <Text>{question.from}</Text> → <Text>{question.to}</Text>
            </PlaceLink>
          </li>
        ))}
      </ul>
    </Empty>
  );
}

type Rows = ReturnType<typeof usePage>['rows'];

function podsIn(rows: Rows): number {
  return rows.all('namespace').reduce((sum, { pods }) => sum + pods, 0);
}
