import { usePage } from '../parts/page-context.ts';
import { reasonTextOf } from '../parts/reason-texts.ts';
import { Age, ObjectLink, Reason, Text } from '../parts/words.tsx';
import { Prose } from './explanation.tsx';

/** What is wrong, the newest cause first: word, object, sentence, what to do. */
export function Problems() {
  const { rows } = usePage();
  const problems = rows
    .all('problem')
    .toSorted((a, b) => (b.since ?? '').localeCompare(a.since ?? '') || a.key.localeCompare(b.key));
  return (
    <section class="problems" aria-label="problems">
      {problems.length === 0 ? (
        <p class="muted">No problems.</p>
      ) : (
        <ul>
          {problems.map(({ key, reason, message, about, since }) => {
            const whatToDo = reasonTextOf(reason)?.whatToDo ?? '';
            return (
              <li key={key}>
                <p>
                  <Reason word={reason} /> <ObjectLink of={about} />{' '}
                  <span class="muted">
                    <Age time={since} />
                  </span>
                </p>
                <p>
                  <Text>{message}</Text>
                </p>
                {whatToDo !== '' && (
                  <p class="muted">
                    <Prose text={whatToDo} />
                  </p>
                )}
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}
