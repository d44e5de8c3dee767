# fish completion of gpucap. What stands behind `gpucap run --` is completed as the command that it is.
function __gpucap_pids
    gpucap-top --query pid,command --format csv,noheader 2>/dev/null | string replace ', ' \t
end
function __gpucap_groups
    gpucap-top --by group --csv 2>/dev/null | tail -n +2 | string replace -r ',.*' ''
end
function __gpucap_in_command
    contains -- -- (commandline -opc)
end
set -l none 'not __fish_seen_subcommand_from run set check version'
set -l run '__fish_seen_subcommand_from run; and not __gpucap_in_command'
set -l set_ '__fish_seen_subcommand_from set; and not __gpucap_in_command'
set -l check '__fish_seen_subcommand_from check; and not __gpucap_in_command'
complete -c gpucap -n 'not __gpucap_in_command' -f
complete -c gpucap -n $none -a run -d 'Start a command'
complete -c gpucap -n $none -a set -d 'Change a limit while the program runs'
complete -c gpucap -n $none -a check -d 'Does gpucap work here'
complete -c gpucap -n $none -a version -d 'Print the version'
complete -c gpucap -n 'not __gpucap_in_command' -s h -l help -d 'Show the help'
complete -c gpucap -n $none -s V -l version -d 'Show the version'
complete -c gpucap -n $run -l limit -x -d 'The cap'
complete -c gpucap -n $run -l group -x -a '(__gpucap_groups)' -d 'Budget shared with others of that name'
complete -c gpucap -n $run -l group-limit -x -d 'What all of the group may have'
complete -c gpucap -n $run -l on-limit -x -a 'deny wait wait:30s observe' -d 'What happens at the limit'
complete -c gpucap -n $run -l wait -x -d 'Start only once so much is free'
complete -c gpucap -n $run -l wait-timeout -x -d 'Give up after that'
complete -c gpucap -n $run -l gpu -x -a any -d 'Show only that one'
complete -c gpucap -n $run -l log -x -a 'off error warn info debug' -d 'How much is logged'
complete -c gpucap -n $run -l log-file -r -F -d 'Where the log goes'
complete -c gpucap -n $run -l dir -r -F -d 'Where the figures lie'
complete -c gpucap -n $run -l json -d 'The summary as JSON'
complete -c gpucap -n $run -l summary -r -F -d 'Write the JSON summary there as well'
complete -c gpucap -n $run -s q -l quiet -d 'Nothing on stderr but errors'
complete -c gpucap -n __gpucap_in_command -x -a '(__fish_complete_subcommand --fcs-skip=(math 1 + (contains -i -- -- (commandline -opc))))'
complete -c gpucap -n $set_ -s p -l pid -x -a '(__gpucap_pids)' -d 'The process'
complete -c gpucap -n $set_ -l group -x -a '(__gpucap_groups)' -d 'Or the group'
complete -c gpucap -n $set_ -l limit -x -d 'The new limit'
complete -c gpucap -n $set_ -l gpu -x -d 'On this one alone'
complete -c gpucap -n $set_ -l dir -r -F -d 'Where the figures lie'
complete -c gpucap -n $check -s p -l pid -x -a '(__gpucap_pids)' -d 'Look at this process'
complete -c gpucap -n $check -l dir -r -F -d 'Where the figures lie'
complete -c gpucap -n $check -l policy -r -F -d 'Judge this policy file'
complete -c gpucap -n $check -l json -d 'As JSON'
